"""The estimator on a simulated cluster, against the fixed margin it replaces."""

from __future__ import annotations

import random

import pytest

from peakgate.calibration import Calibrator, Observation

GIGABYTE = 1_000_000_000
CARD_GB = 80.0
JOBS = 400
WARM_UP = 40
FIXED_MARGIN = 0.15  # of the card, the rule of thumb that calibration replaces


class Group:
    """Jobs of one kind: their need lies off the prediction by a constant, a ratio and a scatter of their own."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name = name
        self.constant_gb, self.ratio, self.scatter = rng.gauss(0.3, 0.5), rng.gauss(0.03, 0.03), rng.uniform(0.004, 0.015)

    def need_gb(self, predicted_gb: float, rng: random.Random) -> float:
        """The true need of a job; three jobs in a hundred need up to a tenth more for reasons nobody models."""
        surprise = rng.uniform(0, 0.1) * predicted_gb if rng.random() < 0.03 else 0.0
        noise = rng.gauss(0, 1) * self.scatter * predicted_gb + rng.gauss(0, 0.1)
        return predicted_gb * (1 + self.ratio) + self.constant_gb + noise + surprise


def an_observation(index: int, group: str, predicted_gb: float, need_gb: float) -> Observation:
    """What the agent sees of a job: 5 % more than its need in the allocator's cache, or an out of memory at the card."""
    fits = need_gb <= CARD_GB
    return Observation(
        prediction=f"predictions/{index}",
        group=group,
        required_bytes=round(predicted_gb * GIGABYTE),
        device_bytes=round(1.05 * predicted_gb * GIGABYTE),
        lower_bytes=round((0.97 * need_gb if fits else CARD_GB) * GIGABYTE),
        upper_bytes=round(1.05 * need_gb * GIGABYTE) if fits else None,
        finished_at=float(index),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bound_covers_and_rejects_less_than_a_fixed_margin(seed: int) -> None:
    """At 95 % at most a tenth of the needs pass the bound, and of the jobs that fit half as many are turned away."""
    rng = random.Random(seed)
    groups = [Group(f"{framework}/{sharding}/bf16", rng) for framework in ("a", "b", "c") for sharding in ("ddp", "fsdp", "zero3")]
    calibrator, missed, fitting, turned_away, turned_away_by_fixed = Calibrator(), 0, 0, 0, 0
    for index in range(JOBS):
        group, predicted_gb = rng.choice(groups), rng.uniform(5, CARD_GB)
        need_gb = group.need_gb(predicted_gb, rng)
        if index >= WARM_UP:
            bound = calibrator.snapshot().bound(group=group.name, required_bytes=round(predicted_gb * GIGABYTE), coverage=0.95)
            bound_gb = bound.bound_bytes / GIGABYTE
            missed += need_gb > bound_gb
            fitting += need_gb <= CARD_GB
            turned_away += need_gb <= CARD_GB < bound_gb
            turned_away_by_fixed += need_gb <= CARD_GB < predicted_gb + FIXED_MARGIN * CARD_GB
        calibrator.learn(an_observation(index, group.name, predicted_gb, need_gb))
    assert missed / (JOBS - WARM_UP) <= 0.10
    assert turned_away / fitting <= 0.5 * turned_away_by_fixed / fitting
