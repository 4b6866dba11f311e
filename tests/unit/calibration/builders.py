"""Subjects and observations with full defaults for the tests of the calibration."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypedDict, Unpack

from peakgate.calibration import Calibrator, Observation, Subject

GB = 1_000_000_000


class Described(TypedDict, total=False):
    """What a test may say of a job."""

    group: str
    framework: str
    version: str
    user: str


def a_subject(
    *,
    required_gb: float = 40.0,
    runtime_gb: float = 2.0,
    activations_gb: float = 10.0,
    card_gb: float = 80.0,
    **described: Unpack[Described],
) -> Subject:
    """A job that is predicted to need 40 GB of an 80 GB card, 2 GB of them for the runtime and 10 GB for activations."""
    required_bytes, runtime_bytes = round(required_gb * GB), round(runtime_gb * GB)
    activation_bytes = round(activations_gb * GB)
    names: Described = {"group": "h100/fsdp/one", "framework": "fsdp", "user": "ada", **described}
    return Subject(
        card_bytes=round(card_gb * GB),
        required_bytes=required_bytes,
        device_bytes=required_bytes,
        runtime_bytes=runtime_bytes,
        activation_bytes=activation_bytes,
        state_bytes=max(0, required_bytes - runtime_bytes - activation_bytes),
        **names,
    )


def an_observation(
    need_gb: float = 40.0, *, at: float = 1.0, prediction: str = "", of: Subject | None = None, exact: bool = True
) -> Observation:
    """The attempt that ended `at` and needed this much, or at least this much."""
    need_bytes = round(need_gb * GB)
    return Observation(
        prediction=prediction or f"predictions/{at:g}",
        subject=of or a_subject(),
        lower_bytes=need_bytes,
        upper_bytes=need_bytes if exact else None,
        finished_at=at,
    )


def a_history(
    rows: int,
    *,
    seed: int = 1,
    shift_gb: float = 0.0,
    scatter: float = 1.0,
    start: int = 1,
    told: bool = False,
    **described: Unpack[Described],
) -> list[Observation]:
    """Attempts of twelve users that needed what was predicted, give or take a scale; every tenth died early."""
    draw = random.Random(seed)
    history = []
    for index in range(start, start + rows):
        described_row: Described = {"user": f"user-{index % 12}", **described}
        subject = a_subject(required_gb=draw.uniform(20, 60), activations_gb=draw.uniform(2, 15), **described_row)
        need_bytes = subject.required_bytes + round((shift_gb + draw.gauss(0, scatter) * subject.scale) * GB)
        exact = index % 10 != 0
        lower_bytes = need_bytes if exact else need_bytes // 2
        history.append(
            Observation(
                prediction=f"predictions/{index}",
                subject=subject,
                lower_bytes=lower_bytes,
                upper_bytes=need_bytes if exact else None,
                finished_at=float(index),
                has_statistics=told,
            )
        )
    return history


def a_calibrator(observations: Iterable[Observation]) -> Calibrator:
    """A calibrator that has learned these, each of them."""
    calibrator = Calibrator()
    for observation in observations:
        outcome = calibrator.learn(observation)
        assert outcome.learned, outcome.message
    return calibrator


def bound_gb(calibrator: Calibrator, *, of: Subject | None = None, coverage: float = 0.95) -> float:
    """The bound of the next job in GB."""
    return calibrator.snapshot().bound(of or a_subject(), coverage=coverage).bound_bytes / GB
