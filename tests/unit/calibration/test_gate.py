"""The sanity gate in front of the calibrator."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from peakgate.calibration import Calibrator, Observation

GIGABYTE = 1_000_000_000


def an_observation(*, need_gb: float = 40.0) -> Observation:
    """A job that was predicted to need 40 GB and needed `need_gb`."""
    need_bytes = round(need_gb * GIGABYTE)
    return Observation(
        prediction="predictions/1",
        group="huggingface/fsdp/amp-bf16",
        required_bytes=40 * GIGABYTE,
        device_bytes=40 * GIGABYTE,
        lower_bytes=need_bytes,
        upper_bytes=need_bytes,
        finished_at=1.0,
    )


@pytest.mark.parametrize(
    ("observation", "want_reason"),
    [
        (replace(an_observation(), upper_bytes=0, lower_bytes=0), "VALUE_INVALID"),
        (replace(an_observation(), lower_bytes=-1), "VALUE_INVALID"),
        (replace(an_observation(), required_bytes=0), "VALUE_INVALID"),
        (replace(an_observation(), device_bytes=0), "VALUE_INVALID"),
        (replace(an_observation(), finished_at=math.nan), "VALUE_INVALID"),
        (replace(an_observation(), finished_at=math.inf), "VALUE_INVALID"),
        (replace(an_observation(), prediction=""), "VALUE_INVALID"),
        (replace(an_observation(), group=""), "VALUE_INVALID"),
        (replace(an_observation(), upper_bytes=39 * GIGABYTE), "INTERVAL_INVALID"),
        (an_observation(need_gb=29.9), "FAR_BELOW_PREDICTION"),
        (an_observation(need_gb=63.1), "FAR_ABOVE_PREDICTION"),
        (replace(an_observation(need_gb=63.1), upper_bytes=None), "FAR_ABOVE_PREDICTION"),
    ],
)
def test_what_cannot_be_about_the_job_is_kept_out(observation: Observation, want_reason: str) -> None:
    """The row is refused with its reason and a line for a person, and the snapshot stays what it was."""
    calibrator = Calibrator()
    before = calibrator.snapshot()
    outcome = calibrator.learn(observation)
    assert (outcome.learned, outcome.reason) == (False, want_reason)
    assert outcome.message
    assert calibrator.snapshot() == before


@pytest.mark.parametrize("need_gb", [30.1, 40.0, 62.9])
def test_what_may_be_about_the_job_is_learned(need_gb: float) -> None:
    """The gate is wide: three quarters of the prediction up to one and a half of it and 3 GB."""
    assert Calibrator().learn(an_observation(need_gb=need_gb)).learned


def test_a_low_lower_bound_is_learned() -> None:
    """A job that died early was not smaller than predicted: nothing is known but its lower bound."""
    assert Calibrator().learn(replace(an_observation(need_gb=5), upper_bytes=None)).learned
