"""A small form of the bench of the hook, held to a multiple of the bars."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench import slurm as bench
from tests.bench.bounds import suite_bar
from tests.integration.slurm.cluster import Slurm


def test_a_healthy_gate_costs_milliseconds_and_loses_nothing(slurm: Slurm, tmp_path: Path) -> None:
    """The hook's time, what an sbatch takes longer, and sixty jobs of twenty users at once."""
    with bench.healthy(slurm, tmp_path) as gate:
        assert min(bench.hook_p95_seconds(slurm, 20) for _ in range(3)) <= suite_bar("slurm_hook_p95_seconds")
        assert bench.added_seconds(slurm, gate, rounds=3, submissions=5) <= suite_bar("slurm_added_seconds")
        lost, unchecked = bench.lost_of(slurm, 60)
    assert lost == 0
    assert unchecked <= 3, gate.log


@pytest.mark.parametrize("mode", bench.FAILURES)
def test_a_gate_that_fails_holds_nobody_up(slurm: Slurm, tmp_path: Path, mode: str) -> None:
    """Every job is admitted with a stamp; after three the gate is left alone."""
    first, rest = bench.failing_seconds(slurm, tmp_path, mode)
    assert first <= suite_bar("slurm_failing_call_seconds")
    assert rest <= suite_bar("slurm_broken_call_seconds")


@pytest.mark.parametrize(("parallel", "name"), [(1, "slurm_looked_on_seconds"), (20, "slurm_looked_on_parallel_seconds")])
def test_who_only_looks_on_waits_little(slurm: Slurm, tmp_path: Path, parallel: int, name: str) -> None:
    """sinfo of another user, while jobs are submitted to a gate that hangs."""
    assert bench.looked_on_seconds(slurm, tmp_path, parallel=parallel) <= suite_bar(name)
