"""Stored attempts as a history, and that a history of them reads the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.server.simulation.attempts import CARD_BYTES, GB, PREDICTION, an_attempt

from peakgate.calibration import Observation
from peakgate.server.memory import memory_model
from peakgate.server.simulation.history import attempt_of
from peakgate.server.simulation.past import PastReader, Truth
from peakgate.server.store.records import PastRow
from peakgate.server.subjects import observation_text

OBSERVATION = Observation(
    prediction="predictions/1/7/0",
    subject=replace(PastReader(memory_model(), reserve_bytes=0, now=1e6).read(an_attempt()).subject, user="c/1000"),
    lower_bytes=20 * GB,
    upper_bytes=PREDICTION.device_bytes,
    finished_at=1000.0,
    received_at=1010.0,
    has_statistics=True,
)


def a_row(observation: Observation | None = OBSERVATION, *, reason: str = "") -> PastRow:
    """The row of an attempt of job 7."""
    return PastRow(
        prediction="predictions/1",
        job="7",
        restart=0,
        created_us=900_000_000,
        finished_us=1_000_000_000,
        observed_bytes=PREDICTION.device_bytes,
        longest_sequence=0,
        reason=reason,
        body=observation_text(observation) if observation is not None else "",
        job_body=an_attempt().job.SerializeToString(),
    )


def test_an_attempt_reads_back_as_it_was_told() -> None:
    """The ends of the need, whose it was, when it was asked for and when it ended."""
    attempt = attempt_of(a_row())
    past = PastReader(memory_model(), reserve_bytes=0, now=1e6).read(attempt)
    assert past.observation is not None
    theirs = {"prediction": past.name, "config": past.observation.config, "received_at": past.observation.received_at}
    assert past.observation == replace(OBSERVATION, **theirs)  # type: ignore[arg-type]  # the names are those of the record
    assert (past.submitted_at, past.finished_at, past.truth) == (900.0, 1000.0, Truth.FITS)


@pytest.mark.parametrize(
    ("reason", "changes", "want_truth"),
    [
        ("OUT_OF_MEMORY", {"upper_bytes": None, "lower_bytes": CARD_BYTES}, Truth.DIES),
        ("OUT_OF_MEMORY", {"upper_bytes": None, "lower_bytes": CARD_BYTES // 2}, Truth.UNKNOWN),
        ("CUT_SHORT", {"upper_bytes": None}, Truth.UNKNOWN),
        ("END_UNKNOWN", {"upper_bytes": None}, Truth.UNKNOWN),
        ("NO_SECOND_STEP", {"upper_bytes": None}, Truth.UNKNOWN),
        ("LENGTH_UNKNOWN", {"upper_bytes": None}, Truth.FITS),
        ("USER_QUARANTINED", {}, Truth.FITS),
        ("FAR_ABOVE_PREDICTION", {"upper_bytes": None, "lower_bytes": CARD_BYTES}, Truth.DIES),
    ],
)
def test_how_it_ended_is_told_by_why_its_need_is_not_known(reason: str, changes: dict[str, object], want_truth: Truth) -> None:
    """Only what came to its end fits for sure."""
    observation = replace(OBSERVATION, **changes)  # type: ignore[arg-type]  # the names are those of the record
    past = PastReader(memory_model(), reserve_bytes=0, now=1e6).read(attempt_of(a_row(observation, reason=reason)))
    assert past.truth is want_truth


def test_a_full_card_fits_and_teaches_nothing() -> None:
    """The calibration was told nothing of it, and the job ended well."""
    row = replace(a_row(None, reason="CARD_FULL"), observed_bytes=CARD_BYTES)
    past = PastReader(memory_model(), reserve_bytes=0, now=1e6).read(attempt_of(row))
    assert (past.truth, past.need_bytes) == (Truth.FITS, None)
