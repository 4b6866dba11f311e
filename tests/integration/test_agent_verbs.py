"""What an operator does with an agent: look, pause, resume, list, deliver, replay; and what a driver update does to it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agent_service import PROGRAM, RecordingService, a_process, an_agent, serving, until
from tests.integration.cli import Done, peakgate

from peakgate.agent.replay import replay
from peakgate.agent.simulated.clock import SharedClock
from peakgate.agent.simulated.library import compiled_library, environment_for

GIB = 1 << 30
GPU = "GPU-00000000-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def _compiler() -> None:
    """The simulated NVML is compiled at its first use."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the simulated NVML (Debian: gcc libc6-dev)")


async def told(*arguments: object) -> Done:
    """`peakgate agent` with these words."""
    return await asyncio.to_thread(peakgate, "agent", *arguments)


async def test_a_node_is_operated(tmp_path: Path) -> None:
    """While the service is away: pause and resume reach the running agent, the spool can be listed beside it and delivered after it,
    and the recording gives the peaks that were delivered."""
    control, spool, recording = tmp_path / "control.sock", tmp_path / "agent.db", tmp_path / "samples.jsonl"
    options: dict[str, Any] = {
        "control": str(control),
        "record": str(recording),
        "duration_seconds": None,
        "simulate": "demo,PEAK=40G,SECONDS=60",
    }
    async with an_agent(1, tmp_path, **options) as agent:
        await until(control.exists)
        await until(lambda: recording.exists() and recording.read_text().count(f'"used_bytes":{40 * GIB}') > 2)
        paused = await told("pause", "--control", control, "--for", "60")
        assert (paused.status, paused.out) == (0, "paused\n")
        before = recording.stat().st_size
        listed = await told("spool", "ls", "--spool", spool, "--json")
        assert recording.stat().st_size == before, "nothing is read while it is paused"
        resumed = await told("resume", "--control", control)
        assert (resumed.status, resumed.out) == (0, "watching\n")
        agent.kill()
        await agent.wait()
    assert peaks_of(json.loads(listed.out)) == {(GPU, 40), (GPU[:-1] + "1", 3)}
    service = RecordingService()
    async with serving(service) as port:
        drained = await told("spool", "drain", "--spool", spool, "--server", f"127.0.0.1:{port}")
    assert (drained.status, drained.out) == (0, "empty\n")
    delivered = {(peak.gpu_uuid, peak.pid, peak.peak_bytes) for peak in service.peaks().values()}
    rows, _ = replay(recording)
    assert {(row.key.gpu_uuid, row.key.pid, row.peak_bytes) for row in rows} == delivered


def peaks_of(listed: dict[str, Any]) -> set[tuple[str, int]]:
    """(GPU, GiB) of every row."""
    return {(row["key"]["gpu_uuid"], row["peak_bytes"] // GIB) for row in listed["peaks"]}


def test_a_recording_is_replayed_by_the_command(tmp_path: Path) -> None:
    """A table of the peaks, with what is not certain about them; a file that is no recording is bad usage."""
    gpu = {"uuid": GPU, "name": "H100", "total_bytes": 80 * GIB}
    sample = {"kind": "ProcessSample", "gpu": gpu, "time": 1.8e9, "processes": [{"pid": 7, "used_bytes": 5 * GIB, "kinds": 5}]}
    recording = tmp_path / "samples.jsonl"
    recording.write_text(json.dumps(sample) + "\n")
    shown = peakgate("agent", "replay", recording)
    assert (shown.status, "5.00 GiB" in shown.out, "unattributed mps" in shown.out) == (0, True, True)
    recording.write_text("weather\n")
    assert peakgate("agent", "replay", recording).status == 2


async def test_nobody_is_there_to_be_paused(tmp_path: Path) -> None:
    """Exit status 4: whether NVML is free is not known. A spool that is not there is bad usage."""
    paused = await told("pause", "--control", tmp_path / "control.sock", "--timeout", "1")
    assert (paused.status, "Start the agent" in paused.err) == (4, True)
    drained = await told("spool", "drain", "--spool", tmp_path / "agent.db")
    assert (drained.status, "there is no spool" in drained.err) == (2, True)


def test_one_look_shows_what_is_there() -> None:
    """As JSON and as a table, with a process of this machine and the job that it belongs to; nothing is kept."""
    scenario = f"demo,PID={os.getpid()},PEAK=61G"
    seen = json.loads(peakgate("agent", "once", "--simulate", scenario, "--json", PEAKGATE_PREDICTION="predictions/p1").out)
    process = seen["gpus"][GPU]["processes"][str(os.getpid())]
    assert (process["process"]["kinds"], process["process"]["used_bytes"]) == (["compute"], 520 << 20)
    shown = peakgate("agent", "once", "--simulate", scenario)
    assert (shown.status, str(os.getpid()) in shown.out, GPU in shown.out) == (0, True, True)


def test_a_check_up_names_what_is_wrong(tmp_path: Path) -> None:
    """Status 1 because the service is away; each line that is not well has its remedy."""
    done = peakgate("agent", "doctor", "--simulate", "demo", "--server", "127.0.0.1:1", "--spool", tmp_path / "agent.db", "--json")
    lines = {each["name"]: each for each in json.loads(done.out)}
    assert done.status == 1
    assert (lines["service"]["state"], lines["spool"]["state"], lines["opens"]["state"]) == ("bad", "ok", "ok")
    assert {"pids", "cgroup", "environ", "accounting", "agent.sock", "gate.sock"} <= lines.keys()
    assert all(line["remedy"] for line in lines.values() if line["state"] == "bad")


async def test_a_driver_update_starts_the_agent_again(tmp_path: Path) -> None:
    """The library in the process no longer fits: the same process id goes on with a new program, and what it had seen is not lost."""
    scenario = tmp_path / "update.scn"
    scenario.write_text(
        f"driver 580.65.06\ndriver 590.44 from=100\ngpu 0 uuid={GPU} total=80G\nprocess 0 pid=4999001 memory=0:12G,50:30G,99:7G\n"
    )
    service = RecordingService()
    clock = SharedClock(tmp_path / "clock")
    clock.set_time(1.0)
    environment = environment_for(compiled_library(cache=tmp_path), scenario) | clock.environment
    async with serving(service) as port:
        options = {
            "server": f"127.0.0.1:{port}", "simulate": None, "node": "node-1", "cluster": "alpha", "spool": str(tmp_path / "agent.db"),
            "once": False, "duration_seconds": None, "transport": "unary", "metrics_port": None, "interval_seconds": 0.3,
            "control": str(tmp_path / "control.sock"),
        }  # fmt: skip
        async with a_process(sys.executable, "-c", PROGRAM, json.dumps(options), environment=environment) as agent:
            await until(lambda: service.batches)
            clock.set_time(60.0)
            await until(lambda: any(peak.peak_bytes == 30 * GIB for peak in service.peaks().values()))
            clock.set_time(101.0)
            await until(lambda: service.batches[-1].node.driver_version == "590.44", seconds=60)
            assert agent.returncode is None
            agent.terminate()
            assert await agent.wait() == 0
    told = {batch.node.driver_version for batch in service.batches}
    assert told - {""} == {"580.65.06", "590.44"}  # empty: what lay in the spool is sent at once, before the driver has answered
    assert {(peak.pid, peak.peak_bytes // GIB) for peak in service.peaks().values()} == {(4999001, 30)}
