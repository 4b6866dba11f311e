"""Attempts as policies meet them: what is known of the need, and whether the job fits its card."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.server.simulation.attempts import CARD_BYTES, DEVICE_BYTES, GB, NOW, PREDICTION, an_attempt

from peakgate.server.memory import memory_model
from peakgate.server.simulation.past import PastReader, RefusedError, Truth
from peakgate.v1.calibration_simulation_pb2 import PastAttempt


def a_reader(reserve_bytes: int = 0) -> PastReader:
    """At a clock of a million seconds."""
    return PastReader(memory_model(), reserve_bytes=reserve_bytes, now=NOW)


def reason_of(attempt: PastAttempt) -> str:
    """Why it is refused."""
    with pytest.raises(RefusedError) as caught:
        a_reader().read(attempt)
    assert caught.value.message
    return caught.value.reason


def test_a_job_is_predicted_by_the_present_model() -> None:
    """Its group, its figures and its card are those of a prediction that is made now, its user that of the line."""
    past = a_reader(reserve_bytes=GB).read(an_attempt(user="ada"))
    assert (past.subject.required_bytes, past.subject.card_bytes, past.subject.user) == (PREDICTION.required_bytes, CARD_BYTES, "ada")
    assert past.usable_bytes <= CARD_BYTES - GB
    assert past.observation is not None
    assert past.need_bytes == pytest.approx(PREDICTION.required_bytes)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({}, Truth.FITS),
        ({"observed_bytes": 0}, Truth.FITS),  # that it finished says so
        ({"outcome": "oom", "observed_bytes": 0}, Truth.DIES),
        ({"outcome": "oom", "observed_bytes": CARD_BYTES}, Truth.DIES),
        ({"outcome": "oom", "observed_bytes": CARD_BYTES // 2}, Truth.UNKNOWN),  # beside another program, or of the host
        ({"outcome": "failed"}, Truth.UNKNOWN),
        ({"outcome": "cancelled", "observed_bytes": 0}, Truth.UNKNOWN),
        ({"outcome": "", "observed_bytes": 0, "lower_bytes": 30 * GB, "upper_bytes": 40 * GB}, Truth.FITS),
        ({"outcome": "", "observed_bytes": 0, "lower_bytes": 30 * GB}, Truth.UNKNOWN),
        ({"outcome": "", "observed_bytes": 0, "lower_bytes": CARD_BYTES}, Truth.DIES),
        ({"gpu_total_bytes": 2 * CARD_BYTES, "observed_bytes": 40 * GB}, Truth.FITS),  # on a larger card, and small
        ({"gpu_total_bytes": 2 * CARD_BYTES, "observed_bytes": 150 * GB}, Truth.DIES),
        ({"gpu_total_bytes": 2 * CARD_BYTES, "observed_bytes": 90 * GB}, Truth.UNKNOWN),  # 90 GB with the cache, 67 without
        ({"gpu_total_bytes": CARD_BYTES // 2, "outcome": "oom", "observed_bytes": CARD_BYTES // 2}, Truth.UNKNOWN),
    ],
)
def test_whether_it_fits_is_what_its_end_showed(fields: dict[str, Any], want: Truth) -> None:
    """Who finished fits; who filled the card and failed does not; who was stopped below it, nobody knows."""
    assert a_reader().read(an_attempt(**fields)).truth is want


def test_the_ends_of_the_need() -> None:
    """A device peak may hold a third of cache; an out-of-memory needs the whole card; nothing seen teaches nothing."""
    finished = a_reader().read(an_attempt()).observation
    assert finished is not None
    assert (finished.lower_bytes, finished.upper_bytes) == (int(DEVICE_BYTES / 1.35), DEVICE_BYTES)
    oom = a_reader().read(an_attempt(outcome="oom", observed_bytes=int(0.95 * CARD_BYTES))).observation
    assert oom is not None
    assert (oom.lower_bytes, oom.upper_bytes) == (CARD_BYTES, None)
    assert a_reader().read(an_attempt(outcome="cancelled", observed_bytes=0)).observation is None
    told = a_reader().read(an_attempt(lower_bytes=20 * GB, upper_bytes=30 * GB, has_statistics=True)).observation
    assert told is not None
    assert (told.lower_bytes, told.upper_bytes, told.has_statistics) == (20 * GB, 30 * GB, True)


def test_a_figure_of_another_job_is_no_need() -> None:
    """It is kept for the policies' own gate, and does not count in the mean."""
    past = a_reader().read(an_attempt(observed_bytes=DEVICE_BYTES // 1_048_576))  # MiB that were taken for bytes
    assert past.observation is not None
    assert past.need_bytes is None


@pytest.mark.parametrize(
    ("attempt", "want_reason"),
    [
        (an_attempt(finished=None), "VALUE_INVALID"),
        (an_attempt(finished=NOW + 400), "FUTURE_DATED"),
        (an_attempt(finished=1_700_000_000_000), "FUTURE_DATED"),  # milliseconds
        (an_attempt(submitted=1001), "INTERVAL_INVALID"),
        (an_attempt(finished=-1), "VALUE_INVALID"),
        (an_attempt(observed_bytes=-1), "VALUE_INVALID"),
        (an_attempt(lower_bytes=3, upper_bytes=2), "INTERVAL_INVALID"),
        (an_attempt(outcome="exploded"), "VALUE_INVALID"),
        (an_attempt(outcome="", observed_bytes=GB), "NOTHING_SEEN"),
        (an_attempt(card=""), "UNDECIDED"),
        (PastAttempt(finish_time=an_attempt().finish_time, outcome="oom"), "FIELD_INVALID"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(attempt: PastAttempt, want_reason: str) -> None:
    """A word, and a line for a person."""
    assert reason_of(attempt) == want_reason


def test_a_job_that_does_not_say_enough_is_undecided() -> None:
    """No micro-batch, no verdict."""
    attempt = an_attempt()
    attempt.job.batch.ClearField("micro_batch_size")
    assert reason_of(attempt) == "UNDECIDED"


def test_the_same_attempt_counts_once() -> None:
    """Whatever line it stands on; another end is another attempt."""
    reader = a_reader()
    reader.read(an_attempt(line=1))
    reader.read(an_attempt(line=2, finished=1001.0))
    with pytest.raises(RefusedError) as caught:
        reader.read(an_attempt(line=3))
    assert caught.value.reason == "REPEATED"


def test_equal_jobs_are_predicted_once() -> None:
    """Also those that cannot be judged."""
    asked = []
    model = memory_model()

    def predict(job: object) -> object:
        asked.append(job)
        return model.predict(job)  # type: ignore[arg-type]  # passed through

    reader = PastReader(replace(model, predict=predict), reserve_bytes=0, now=NOW)  # type: ignore[arg-type]  # it counts
    for number in range(5):
        reader.read(an_attempt(finished=float(number + 1)))
    assert len(asked) == 1


def test_a_capped_length_is_compared_at_the_longest_that_was_seen() -> None:
    """Without it the need is a lower bound, and that it finished still says that it fits."""
    capped = an_attempt(longest_sequence=1024)
    capped.job.batch.sequence_length_is = "cap"
    past = a_reader().read(capped)
    assert past.observation is not None
    assert past.observation.subject.required_bytes < past.subject.required_bytes
    capped.longest_sequence = 0
    unknown = a_reader().read(capped)
    assert unknown.observation is not None
    assert (unknown.observation.upper_bytes, unknown.need_bytes, unknown.truth) == (None, None, Truth.FITS)
