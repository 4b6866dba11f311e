"""A history under one policy: what it admits, what it learns from, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.server.conftest import MODEL
from tests.unit.server.simulation.attempts import GB, a_past

from peakgate.server.policy import Policy
from peakgate.server.simulation.past import Past, Truth
from peakgate.server.simulation.policies import Candidate, candidate
from peakgate.server.simulation.replay import StoppedError, Tally, in_order, replay

STRICT = candidate("alpha:0.01", site=Policy())
FIXED = candidate("fixed:15", site=Policy())


def played(history: list[Past], policy: Candidate = STRICT, *, override_share: float = 0.0) -> Tally:
    """The tally of a history."""
    return replay(in_order(history), policy, MODEL, override_share=override_share)


def test_jobs_are_counted_by_what_became_of_them() -> None:
    """40 GB with 12 GB of margin is admitted on 80, 70 GB is not."""
    history = [
        a_past(0, need_gb=40),
        a_past(1, need_gb=81, required_gb=40),
        a_past(2, need_gb=70, required_gb=70),
        a_past(3, need_gb=81, required_gb=70),
        a_past(4, truth=Truth.UNKNOWN),
        a_past(5, required_gb=70, truth=Truth.UNKNOWN),
    ]
    tally = played(history, FIXED)
    assert tally.admitted == {Truth.FITS: 1, Truth.DIES: 1, Truth.UNKNOWN: 1}
    assert tally.rejected == {Truth.FITS: 1, Truth.DIES: 1, Truth.UNKNOWN: 1}
    assert tally.cost(oom_cost=10, rejection_cost=2) == 12
    assert tally.unused_bytes / tally.known_needs == pytest.approx((12 + 12 + 12 + 42) / 4 * GB)


def test_a_policy_learns_from_what_it_admits() -> None:
    """The need is 3 GB below what is believed: once that was seen the bound comes down to it."""
    history = [a_past(number, need_gb=37) for number in range(60)]
    tally = played(history)
    assert tally.learned == 59  # the end of the last one is seen by nobody
    early, late = (played(history[:count]) for count in (5, 60))
    assert late.unused_bytes / 60 < early.unused_bytes / 5


def test_what_is_rejected_teaches_nothing_but_for_the_tries() -> None:
    """A closed loop: without a run there is no report. The draw of a job is the same under every policy."""
    history = [replace(a_past(number, need_gb=75, required_gb=75), usable_bytes=70 * GB) for number in range(40)]
    assert played(history).learned == 0
    assert played(history).rejected[Truth.FITS] == 40
    tried = [replace(past, draw=number % 4 / 4) for number, past in enumerate(history)]
    found = played(tried, override_share=0.25)
    assert (found.learned, found.rejected[Truth.FITS]) == (10, 40)
    assert played(tried, override_share=0.25) == found


def test_a_report_comes_at_the_end_of_its_job() -> None:
    """While all are running nothing is known, whatever they need."""
    at_once = [replace(a_past(number, need_gb=37), submitted_at=0.0) for number in range(30)]
    assert played(at_once).learned == 0
    waited = played([a_past(number, need_gb=37) for number in range(30)])
    assert waited.unused_bytes < played(at_once).unused_bytes


def test_a_job_does_not_know_its_own_end() -> None:
    """Without a time of submission it is judged by all that had ended before its end."""
    history = [replace(a_past(number), submitted_at=number + 1.0) for number in range(3)]
    assert played(history).learned == 2


def test_the_order_of_the_lines_does_not_matter() -> None:
    """Jobs are taken as they were submitted."""
    history = [a_past(number, need_gb=36 + number % 5) for number in range(50)]
    assert played(history[::-1]) == played(history)


def test_a_distrusted_calibration_is_told() -> None:
    """Rows that cannot be about their jobs, of many users: the calibration does not trust itself, and its bound is the wide one."""
    history = [a_past(number, need_gb=4 if number % 2 else 40) for number in range(100)]
    tally = played(history)
    assert tally.distrusted > 50
    assert played(history, FIXED).distrusted == 0


def test_who_goes_away_ends_the_work() -> None:
    """At the next job."""
    with pytest.raises(StoppedError):
        replay([a_past(0)], FIXED, MODEL, override_share=0.0, stopped=lambda: True)
