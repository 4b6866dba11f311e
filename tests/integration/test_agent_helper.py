"""A training that reports itself, through the real socket, to the real agent over the simulated NVML, to a service."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.agent_service import RecordingService, a_process, an_agent, serving, until

from peakgate.v1 import telemetry_service_pb2 as pb

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
GPU = "GPU-00000000-0000-4000-8000-000000000000"
PREDICTION = "predictions/p1"
SECONDS = 6


@pytest.fixture(autouse=True)
def _compiler() -> None:
    """The simulated NVML is compiled at its first use."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the simulated NVML (Debian: gcc libc6-dev)")


@asynccontextmanager
async def a_training(socket_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program `plain`, which waits for its first line."""
    program = (sys.executable, "-m", "tests.integration.helper_programs", "plain", str(socket_path))
    environment = {"PEAKGATE_PREDICTION": PREDICTION, "PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    async with a_process(*program, environment=environment, folder=ROOT, talks=True) as process:
        yield process


def torch_rows(service: RecordingService) -> list[pb.PeakSample]:
    """The helper's rows in the order in which they came."""
    return [peak for batch in service.batches for peak in batch.peaks if peak.source == "torch"]


async def say(process: asyncio.subprocess.Process, line: str) -> None:
    """On its standard input."""
    assert process.stdin
    process.stdin.write(f"{line}\n".encode())
    await process.stdin.drain()


@pytest.mark.parametrize(("last_line", "want_event", "want_flags"), [("end", "finished", []), ("fail", "oom", ["oom"])])
async def test_a_training_that_reports_itself(tmp_path: Path, last_line: str, want_event: str, want_flags: list[str]) -> None:
    """The row arrives with source torch, the phases and the job that NVML and /proc show; a failed allocation ends the job as oom."""
    service, path = RecordingService(), tmp_path / "agent.sock"
    async with serving(service) as port, a_training(path) as training:
        scenario = f"demo,PID={training.pid},PEAK=61G,SECONDS={SECONDS}"
        async with an_agent(port, tmp_path, simulate=scenario, helper_socket=str(path)) as agent:
            await until(path.exists)
            await say(training, "begin")
            await until(lambda: torch_rows(service))
            await say(training, last_line)
            await training.wait()
            await until(lambda: service.events)
            await until(lambda: torch_rows(service)[-1].ended)
            agent.terminate()
            assert await agent.wait() == 0
    row = torch_rows(service)[-1]
    assert (row.gpu_uuid, row.pid, row.prediction, row.job) == (GPU, training.pid, PREDICTION, PREDICTION)
    assert (row.peak_bytes / GIB, row.torch_allocated_bytes / GIB, row.torch_reserved_bytes / GIB) == (60, 60, 60)
    assert (row.steps_done, row.longest_sequence, row.ooms, list(row.flags)) == (4, 4099, len(want_flags), want_flags)
    phases = {each.phase: (each.allocated_bytes / GIB, each.reserved_bytes / GIB) for each in row.phases}
    assert phases == {"load": (16, 16), "forward": (56, 56), "backward": (60, 60)}
    assert [event.event for event in service.events] == [want_event]
    sampled = service.peaks()[GPU, training.pid, PREDICTION]
    assert sampled.pid_start_ticks == row.pid_start_ticks
    assert not path.exists()


async def test_a_stranger_cannot_report_for_a_training(tmp_path: Path) -> None:
    """This process is on no GPU: whatever it sends, nothing of it reaches the service."""
    from peakgate.v1.allocator_report import AllocatorReport, encode

    service, path = RecordingService(), tmp_path / "agent.sock"
    async with serving(service) as port, a_training(path) as training:
        scenario = f"demo,PID={training.pid},PEAK=61G,SECONDS=60"
        async with an_agent(port, tmp_path, simulate=scenario, helper_socket=str(path)) as agent:
            await until(path.exists)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
                for content in (encode(AllocatorReport(gpu_uuid=GPU, reserved_bytes=79 * GIB)), b"\xff" * 4096, b"{}"):
                    stranger.sendto(content, str(path))
            await say(training, "begin")
            await until(lambda: torch_rows(service))
            agent.terminate()
            assert await agent.wait() == 0
    assert {row.pid for row in torch_rows(service)} == {training.pid}
    assert max(row.peak_bytes for row in torch_rows(service)) == 60 * GIB


async def test_an_agent_that_cannot_open_the_socket_watches_all_the_same(tmp_path: Path) -> None:
    """One line says what is missing; peaks are sampled as ever."""
    service = RecordingService()
    async with serving(service) as port, an_agent(port, tmp_path, helper_socket="/proc/nowhere/agent.sock") as agent:
        await until(service.peaks)
        agent.terminate()
        _, err = await agent.communicate()
    assert (agent.returncode, err.decode().count("nothing is heard from in-process helpers")) == (0, 1)


async def test_the_command_names_the_socket(tmp_path: Path) -> None:
    """`peakgate agent --helper-socket FILE`, as an operator starts it: the socket is there for everybody, and goes with the agent."""
    path = tmp_path / "run" / "agent.sock"
    program = "from peakgate.client.main import main; main()"
    options = ("--simulate", "demo", "--spool", str(tmp_path / "agent.db"), "--server", "127.0.0.1:1", "--helper-socket", str(path))
    environment = {"XDG_CACHE_HOME": str(tmp_path.parent / "cache"), "XDG_STATE_HOME": str(tmp_path)}
    async with a_process(sys.executable, "-P", "-c", program, "agent", *options, environment=environment) as agent:
        await until(path.exists)
        assert path.stat().st_mode & 0o666 == 0o666
        agent.terminate()
        await until(lambda: not path.exists())
