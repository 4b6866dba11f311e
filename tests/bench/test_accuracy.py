"""The scorer of the bench, on rows made by hand."""

from __future__ import annotations

import math

import pytest
from tests.bench.accuracy import Share, figures_of, predicted_bytes, ratios_of, rows, traced_figures, traced_sets

GIB = 2**30


def a_row(**outcome: object) -> dict[str, object]:
    """A trusted row: measured, allocated, 10 GiB on a 16-GiB card."""
    outcome = {"kind": "measured", "metric": "allocated", "peak_bytes": 10 * GIB, "capacity_bytes": 16 * GIB} | outcome
    return {"job": {"framework": {"name": "torch"}}, "outcome": outcome, "quality": "high", "phase": "steady", "one_sided": False}


def an_answer(allocated: float = 10, required: float | None = None, device: float | None = None, states: float = 1) -> dict[str, object]:
    """An answer with these peaks in GiB."""
    device = allocated + 1 if device is None else device
    peak = {"allocated_bytes": allocated * GIB, "reserved_bytes": allocated * GIB, "device_bytes": device * GIB}
    peak["required_bytes"] = (device if required is None else required) * GIB
    return {"peak": peak, "ledger": [{"category": "parameters", "bytes": states * GIB}]}


def test_a_measurement_is_held_against_its_own_metric() -> None:
    """Allocated against allocated and device against device; a second metric of a run counts as well."""
    row = a_row(also={"nvidia_smi": 22 * GIB})
    assert ratios_of(row, an_answer(allocated=10, device=11)) == [1.0, 0.5]


@pytest.mark.parametrize(("measured", "want"), [(5, 10), (11, 11), (40, 15)])
def test_an_unnamed_metric_is_held_against_the_nearest_point(measured: float, want: float) -> None:
    """Between what is allocated and what the device shows any value is right."""
    assert predicted_bytes(an_answer(allocated=10, device=15), "unknown", measured * GIB) == want * GIB


@pytest.mark.parametrize(("allocated", "want"), [(12, []), (9.9, []), (9, [0.9])])
def test_a_one_sided_row_counts_only_below(allocated: float, want: list[float]) -> None:
    """A value at the card's limit says only that the peak is at least that."""
    row = a_row() | {"one_sided": True}
    assert ratios_of(row, an_answer(allocated=allocated)) == want


def test_errors_are_symmetric_in_the_ratio() -> None:
    """Half and double are the same error; the 90th percentile is the nearest rank."""
    figures = figures_of([(a_row(), an_answer(20)), (a_row(), an_answer(5)), (a_row(), an_answer(10))])
    assert figures.median == pytest.approx(math.log(2))
    assert figures.p90 == pytest.approx(math.log(2))
    assert figures.counted == 3


def test_an_unanswered_out_of_memory_job_is_missed() -> None:
    """A predictor cannot win by silence."""
    oom = a_row(kind="oom", peak_bytes=None)
    figures = figures_of([(oom, an_answer(required=20)), (oom, {"error": {"message": "no"}})])
    assert figures.out_of_memory_caught == Share(1, 2)
    assert figures.answered == Share(1, 2)


def test_a_job_whose_states_exceed_the_card_proves_nothing() -> None:
    """Any calculator catches it, so it is left out."""
    assert figures_of([(a_row(kind="oom"), an_answer(required=40, states=20))]).out_of_memory_caught == Share(0, 0)


def test_a_job_that_ran_must_not_be_rejected() -> None:
    """A run, and a peak below the card, count as jobs that fit."""
    pairs = [
        (a_row(kind="fits"), an_answer(required=17)),
        (a_row(), an_answer(required=15)),
        (a_row(peak_bytes=17 * GIB), an_answer(required=18)),
    ]
    assert figures_of(pairs).false_rejects == Share(1, 2)


def test_rows_that_cannot_be_trusted_are_left_out() -> None:
    """Low quality gives neither errors nor verdicts."""
    figures = figures_of([(a_row(kind="oom") | {"quality": "low"}, an_answer()), (a_row() | {"quality": "medium"}, an_answer(20))])
    assert (figures.counted, figures.out_of_memory_caught) == (0, Share(0, 0))


def test_traced_values_of_zero_do_not_compare() -> None:
    """Saved bytes are unknown under checkpointing; the peak still counts, and so does its phase."""
    row = {"saved_bytes_per_layer": 0, "peak_live_bytes": 100, "peak_phase": "backward"}
    answer = {"peak": {"allocated_bytes": 120, "live_bytes": 110}, "peak_phase": "backward"}
    found = traced_figures([(row, answer)])
    assert found.layer_errors == ()
    assert found.peak_errors == pytest.approx((0.1,))
    assert found.phases_right == Share(1, 1)


def test_the_golden_rows_are_there() -> None:
    """Every published row names its source, every traced row its model; ids are unique."""
    published = rows("published_jobs")
    assert len({row["id"] for row in published}) == len(published) > 200
    assert all(row["source"] and row["reference"] and row["job"] for row in published)
    assert {path.stem: len(rows(path.stem)) for path in traced_sets()} == {
        "traced_clip": 10,
        "traced_frozen": 31,
        "traced_fullsize": 34,
        "traced_methods": 54,
        "traced_more": 165,
        "traced_optimizers": 29,
        "traced_small": 168,
    }
