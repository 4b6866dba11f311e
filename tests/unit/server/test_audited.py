"""A stored attempt as an audit looks at it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.server.attempts import SUBJECT

from peakgate.calibration import Observation
from peakgate.server.answer import pack
from peakgate.server.audited import seen_of
from peakgate.server.store.audit_records import AuditRow
from peakgate.server.subjects import observation_text
from peakgate.v1.prediction_pb2 import Capacity, Peak, PredictResponse

ANSWER = PredictResponse(peak=Peak(coverage=0.99), capacity=Capacity(total_bytes=80_000, usable_bytes=79_000))
ROW = AuditRow(
    group="g",
    verdict="ADMIT",
    required_bytes=50_000,
    bound_bytes=55_000,
    total_bytes=80_000,
    answer=pack(ANSWER),
    kind="exact",
    reason="",
    source="sampled",
    predicted_bytes=58_000,
    lower_bytes=40_000,
    upper_bytes=60_900,
    finished_us=7,
    body="",
)
"""A device peak 5 % above the predicted one."""


def test_the_need_is_the_one_that_the_calibration_learns() -> None:
    """The relative error of the device peak carries over to the requirement."""
    observation = Observation(prediction="p", subject=SUBJECT, lower_bytes=40_000, upper_bytes=60_900, finished_at=0)
    assert seen_of(ROW).need_bytes == observation.need_bytes == pytest.approx(52_500)


def test_promise_and_card_are_those_of_the_answer() -> None:
    """What the verdict was made with."""
    seen = seen_of(ROW)
    assert (seen.promised, seen.usable_bytes, seen.bound_bytes) == (0.99, 79_000, 55_000)


@pytest.mark.parametrize("answer", [b"", b"answer", pack(ANSWER)[:-3]])
def test_an_answer_that_cannot_be_read_promises_nothing(answer: bytes) -> None:
    """And the whole card stands in for what was usable of it."""
    seen = seen_of(replace(ROW, answer=answer))
    assert (seen.promised, seen.usable_bytes) == (None, 80_000)


def test_an_answer_that_states_no_coverage_promises_nothing() -> None:
    """0 is no promise."""
    assert seen_of(replace(ROW, answer=pack(PredictResponse()))).promised is None


def test_a_job_whose_length_is_a_cap_is_held_against_what_it_was_compared_with() -> None:
    """At its own length the job was predicted to need half: a peak as predicted is a need of half."""
    half = replace(SUBJECT, required_bytes=25_000, device_bytes=29_000)
    told = Observation(prediction="p", subject=half, lower_bytes=20_000, upper_bytes=29_000, finished_at=0, received_at=0)
    row = replace(ROW, predicted_bytes=29_000, lower_bytes=20_000, upper_bytes=29_000, body=observation_text(told))
    assert seen_of(row).need_bytes == pytest.approx(25_000)
    assert seen_of(row).required_bytes == 50_000


@pytest.mark.parametrize(
    ("source", "lower", "want"),
    [
        ("sampled", 40_000, (False, False)),
        ("sampled+torch", 50_000, (True, False)),
        ("accounting+torch", 45_000, (True, True)),
        ("torch", 50_000, (False, False)),
    ],
)
def test_labels(source: str, lower: int, want: tuple[bool, bool]) -> None:
    """Told by the allocator's statistics beside the device; greedy when the device shows 1.35 times what is in use or more."""
    seen = seen_of(replace(ROW, source=source, lower_bytes=lower))
    assert (seen.is_told, seen.is_greedy) == want


def test_an_out_of_memory_is_a_lower_end() -> None:
    """Nothing else is known of its need."""
    seen = seen_of(replace(ROW, kind="lower", reason="OUT_OF_MEMORY", lower_bytes=80_000, upper_bytes=None))
    assert (seen.need_bytes, seen.is_out_of_memory, seen.is_exact, seen.is_miss) == (80_000, True, False, True)
