"""The checks of the seed rows, by the rows' ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from peakgate.memory.job import Job, Model, Optimizer, Precision

GIB, GB = 2**30, 1e9
Check = Callable[[dict[str, Any], dict[str, Any], float], None]
CHECKS: dict[str, Check] = {}


def row(*names: str) -> Callable[[Check], Check]:
    """Registers a check under the ids of its rows."""

    def register(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return register


def near(got: float, want: float, tolerance: float) -> None:
    """Asserts equality within a relative tolerance; 0 is exact."""
    assert got == pytest.approx(want, rel=max(tolerance, 1e-15), abs=0)


def bare(parameters: float, recipe: str = "deepspeed-bf16", **changes: Any) -> Job:
    """A job that is nothing but a parameter count."""
    return Job(model=Model(parameters=int(parameters)), precision=Precision(recipe=recipe, **changes), optimizer=Optimizer(name="adamw"))
