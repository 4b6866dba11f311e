"""A small form of the bench of the hook, held to a multiple of the bars."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.bench import slurm as bench
from tests.integration.slurm.cluster import Slurm

BOUNDS = yaml.safe_load((Path(bench.__file__).parent / "bounds.yaml").read_text())


def bar(name: str) -> float:
    """The bar with the room that the suite gives it."""
    return float(BOUNDS[name]["bar"]) * float(BOUNDS["suite_factor"])


def test_a_healthy_gate_costs_milliseconds_and_loses_nothing(slurm: Slurm, tmp_path: Path) -> None:
    """The hook's time, what an sbatch takes longer, and sixty jobs of twenty users at once."""
    with bench.healthy(slurm, tmp_path) as gate:
        assert min(bench.hook_p95_seconds(slurm, 20) for _ in range(3)) <= bar("slurm_hook_p95_seconds")
        assert bench.added_seconds(slurm, gate, rounds=3, submissions=5) <= bar("slurm_added_seconds")
        lost, unchecked = bench.lost_of(slurm, 60)
    assert lost == 0
    assert unchecked <= 3, gate.log


@pytest.mark.parametrize("mode", bench.FAILURES)
def test_a_gate_that_fails_holds_nobody_up(slurm: Slurm, tmp_path: Path, mode: str) -> None:
    """Every job is admitted with a stamp; after three the gate is left alone."""
    first, rest = bench.failing_seconds(slurm, tmp_path, mode)
    assert first <= bar("slurm_failing_call_seconds")
    assert rest <= bar("slurm_broken_call_seconds")


@pytest.mark.parametrize(("parallel", "name"), [(1, "slurm_looked_on_seconds"), (20, "slurm_looked_on_parallel_seconds")])
def test_who_only_looks_on_waits_little(slurm: Slurm, tmp_path: Path, parallel: int, name: str) -> None:
    """sinfo of another user, while jobs are submitted to a gate that hangs."""
    assert bench.looked_on_seconds(slurm, tmp_path, parallel=parallel) <= bar(name)
