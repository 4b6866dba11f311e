"""The sanity gate in front of the calibrator."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.unit.calibration.builders import GB, a_subject, an_observation

from peakgate.calibration import Calibrator, Observation
from peakgate.calibration.gate import judge_size, judge_values


def reason_of(observation: Observation) -> str:
    """Why it is kept out; empty when it is not."""
    refusal = judge_values(observation) or judge_size(observation)
    return refusal.reason if refusal else ""


@pytest.mark.parametrize(
    ("observation", "want_reason"),
    [
        (an_observation(0.0), "VALUE_INVALID"),
        (replace(an_observation(), lower_bytes=-1), "VALUE_INVALID"),
        (replace(an_observation(), upper_bytes=math.nan), "VALUE_INVALID"),  # type: ignore[arg-type]  # what a broken sender sends
        (replace(an_observation(), subject=replace(a_subject(), required_bytes=0)), "VALUE_INVALID"),
        (replace(an_observation(), subject=replace(a_subject(), device_bytes=0)), "VALUE_INVALID"),
        (replace(an_observation(), finished_at=math.nan), "VALUE_INVALID"),
        (replace(an_observation(), finished_at=math.inf), "VALUE_INVALID"),
        (replace(an_observation(), received_at=math.nan), "VALUE_INVALID"),
        (replace(an_observation(), prediction=""), "VALUE_INVALID"),
        (an_observation(of=a_subject(group="")), "VALUE_INVALID"),
        (replace(an_observation(at=10_000), received_at=9_699.0), "FUTURE_DATED"),
        (replace(an_observation(), upper_bytes=39 * GB), "INTERVAL_INVALID"),
        (an_observation(28.4), "FAR_BELOW_PREDICTION"),
        (an_observation(60.1), "FAR_ABOVE_PREDICTION"),
        (an_observation(60.1, exact=False), "FAR_ABOVE_PREDICTION"),
        (an_observation(70, of=a_subject(required_gb=68)), ""),
        (an_observation(79, of=a_subject(required_gb=72)), "CARD_FULL"),
        (an_observation(80.2, of=a_subject(required_gb=72)), "ABOVE_CARD"),
        (an_observation(80.2, of=a_subject(required_gb=72), exact=False), "ABOVE_CARD"),
        (an_observation(80.2, of=a_subject(required_gb=72, card_gb=0)), ""),
        (an_observation(79, of=a_subject(required_gb=72), exact=False), ""),
        (replace(an_observation(79, of=a_subject(required_gb=72)), has_statistics=True), ""),
        (replace(an_observation(at=10_000), received_at=9_701.0), ""),
        (an_observation(28.6), ""),
        (an_observation(59.9), ""),
        (an_observation(5, exact=False), ""),
    ],
)
def test_what_cannot_be_about_the_job_is_kept_out(observation: Observation, want_reason: str) -> None:
    """0.75 and 1.5 times the 38 GB that are counted, 3 GB more, the card, five minutes of clock skew; a job that died early says little."""
    assert reason_of(observation) == want_reason
    outcome = Calibrator().learn(observation)
    assert (outcome.learned, outcome.reason) == (not want_reason, want_reason)
    assert bool(outcome.message) == bool(want_reason)


def test_a_wrong_prior_of_the_runtime_is_no_mismatch() -> None:
    """It is there to be corrected: only what is counted is compared."""
    assert reason_of(an_observation(7.0, of=a_subject(required_gb=13, runtime_gb=8, activations_gb=2))) == ""
