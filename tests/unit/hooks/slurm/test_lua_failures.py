"""deploy/slurm/peakgate.lua before a gate that does not answer as it should: how long the controller waits, and what becomes of the job."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.bench.bounds import suite_bar
from tests.slurm_gates import misbehaving_gate
from tests.unit.hooks.slurm.lua import Call, Lua, Played, play

JOB: dict[str, Lua] = {"tres_per_node": "gres:gpu:h100:2", "script": "#!/bin/sh\n", "partition": "gpu", "environment": {}}


def five(path: Path, version: str = "5.1") -> list[Played]:
    """Five calls in a row with a socket at `path`."""
    return play([Call(job=JOB)] * 5, version=version, settings={"socket": str(path)})


def is_unchecked(found: Played) -> bool:
    """Admitted, with the stamp and a line in the log, and not a word to the user."""
    stamped = (found.code, found.says, found.job.get("admin_comment")) == (0, [], "peakgate=unchecked")
    return stamped and "admitted unchecked" in found.log[0] and "environment.PEAKGATE_PREDICTION" not in found.job


@pytest.mark.parametrize("mode", ["hang", "drip", "slow", "garbage", "flood", "mute", "early"])
def test_a_gate_that_misbehaves_is_left_alone_after_three_calls(tmp_path: Path, version: str, mode: str) -> None:
    """All five jobs are admitted unchecked; the first three wait for the budget at most, the others do not ask."""
    with misbehaving_gate(tmp_path / "gate.sock", mode):
        found = five(tmp_path / "gate.sock", version)
    assert all(map(is_unchecked, found))
    assert [played.seconds <= suite_bar("slurm_failing_call_seconds") for played in found[:3]] == [True] * 3
    assert [played.seconds <= suite_bar("slurm_broken_call_seconds") for played in found[3:]] == [True] * 2
    assert ["did not answer before" in played.log[0] for played in found] == [False] * 3 + [True] * 2


def test_a_stopped_gate_is_one_that_hangs(tmp_path: Path, version: str) -> None:
    """The kernel accepts for it, and nothing answers."""
    with misbehaving_gate(tmp_path / "gate.sock", "answer") as process:
        process.send_signal(signal.SIGSTOP)
        found = five(tmp_path / "gate.sock", version)
    assert all(map(is_unchecked, found))
    assert max(played.seconds for played in found) <= suite_bar("slurm_failing_call_seconds")


def test_an_absent_gate_costs_nothing(tmp_path: Path, version: str) -> None:
    """Neither a missing socket nor one that nobody listens at is waited for."""
    (tmp_path / "dead.sock").touch()
    for path in (tmp_path / "none.sock", tmp_path / "dead.sock"):
        found = five(path, version)
        assert all(map(is_unchecked, found))
        assert max(played.seconds for played in found) <= suite_bar("slurm_broken_call_seconds")


def test_a_gate_that_recovers_is_asked_again(tmp_path: Path) -> None:
    """After the breaker's time one call tries; its failure opens the breaker at once, its success closes it."""
    path = tmp_path / "gate.sock"
    settings: dict[str, Lua] = {"socket": str(path), "breaker_seconds": 0.3, "budget_seconds": 0.05}
    calls = [Call(job=JOB)] * 4 + [Call(job=JOB, wait_seconds=0.35), Call(job=JOB)]
    with misbehaving_gate(path, "hang"):
        found = play(calls, settings=settings)
    asked = ["did not answer before" not in played.log[0] for played in found]
    assert asked == [True, True, True, False, True, False]
    with misbehaving_gate(path, "answer"):
        assert [played.job["admin_comment"] for played in five(path)] == ["peakgate=0123abcd"] * 5


def test_a_long_request_to_a_gate_that_never_reads_ends_in_time(tmp_path: Path) -> None:
    """More than a socket buffers: sending is within the budget as well."""
    job: dict[str, Lua] = JOB | {"script": "\x01" * 65_536, "environment": {"PEAKGATE_JOB": "\x01" * 60_000}}
    with misbehaving_gate(tmp_path / "gate.sock", "answer") as process:
        process.send_signal(signal.SIGSTOP)
        found = play([Call(job=job)], settings={"socket": str(tmp_path / "gate.sock")})
    assert is_unchecked(found[0])
    assert found[0].seconds <= suite_bar("slurm_failing_call_seconds")


@pytest.mark.parametrize("partition", ["gpu", "other,gpu", ""])
def test_a_job_without_a_partition_is_in_the_default_one(tmp_path: Path, partition: str) -> None:
    """What holds for that holds for it."""
    settings: dict[str, Lua] = {"socket": str(tmp_path / "none.sock"), "fail_closed_partitions": ["gpu"]}
    assert play([Call(job=JOB | {"partition": partition})], settings=settings)[0].code == 2002


@pytest.mark.parametrize(
    ("settings", "want_code"),
    [
        ({"fail_open": False}, 2002),
        ({"fail_closed_partitions": ["gpu"]}, 2002),
        ({"fail_closed_partitions": ["other"]}, 0),
    ],
)
def test_a_partition_may_want_every_job_checked(tmp_path: Path, settings: dict[str, Lua], want_code: int) -> None:
    """There a job without an answer is refused, and told so."""
    found = play([Call(job=JOB)] * 5, settings={"socket": str(tmp_path / "none.sock"), **settings})
    assert {played.code for played in found} == {want_code}
    assert all(bool(played.says) == bool(want_code) for played in found)
    assert all(("admin_comment" in played.job) != bool(want_code) for played in found)


def test_without_luasocket_jobs_are_admitted_unchecked(version: str) -> None:
    """One line says which package is missing; each job is stamped."""
    without = 'package.preload["socket"] = function() error("no LuaSocket") end'
    found = play([Call(job=JOB)] * 2, version=version, before=without)
    assert [played.job["admin_comment"] for played in found] == ["peakgate=unchecked"] * 2
    assert sum("LuaSocket is missing" in line for played in found for line in played.log) == 1


def test_a_fault_in_the_hook_is_no_silent_admission(tmp_path: Path, version: str) -> None:
    """What slurmctld would swallow is a stamp and a line in its log; where a partition wants every job checked, a refusal."""
    fault: dict[str, Lua] = JOB | {"environment": 5}
    found = play([Call(job=fault)], version=version, settings={"socket": str(tmp_path / "none.sock")})
    assert (found[0].code, found[0].job["admin_comment"]) == (0, "peakgate=unchecked")
    assert "fault in the hook" in found[0].log[0]
    assert play([Call(job=fault)], version=version, settings={"fail_open": False})[0].code == 2002
