"""The control socket, with a watcher that runs in a thread over the simulated NVML."""

from __future__ import annotations

import asyncio
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import ONE_GPU, SimulatedNode
from tests.unit.agent.test_watcher import TRAINER, a_watcher

from peakgate.agent.control import ask, control_socket
from peakgate.agent.errors import ServiceUnavailableError, UsageError
from peakgate.agent.event_thread import EventThread
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.watcher import Watcher


@asynccontextmanager
async def watching(simulated: SimulatedNvml, folder: Path) -> AsyncIterator[tuple[Watcher, Path]]:
    """A watcher in real time, with its event thread, and its control socket."""
    node = SimulatedNode(simulated, ONE_GPU + TRAINER)
    node.nvml.stop()
    simulated.set_time(1.0)
    watcher, spool, _ = a_watcher(node, folder)
    watcher.sampler._clock = time.monotonic
    watcher.sampler._events = EventThread(nvml=node.nvml)
    watcher._stop = threading.Event()
    path = folder / "control.sock"
    async with control_socket(path, watcher):
        running = asyncio.create_task(asyncio.to_thread(watcher.run))
        while not watcher.is_up:  # noqa: ASYNC110 (another thread's)
            await asyncio.sleep(0.01)
        try:
            yield watcher, path
        finally:
            watcher._stop.set()
            await running
            spool.close()
    assert not path.exists()


async def asked(path: Path, **request: object) -> object:
    """The state after a request."""
    return (await asyncio.to_thread(ask, path, timeout_seconds=10.0, **request))["state"]


async def test_a_pause_lasts_until_it_is_resumed(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """When the answer comes NVML is closed, the waiting thread of events included; a resume opens it again."""
    async with watching(simulated, tmp_path) as (watcher, path):
        assert await asked(path, verb="status") == "watching"
        assert await asked(path, verb="pause", seconds=60) == "paused"
        assert not watcher.is_up
        with pytest.raises(load_pynvml().NVMLError):
            load_pynvml().nvmlDeviceGetCount()
        assert await asked(path, verb="status") == "paused"
        assert await asked(path, verb="resume") == "watching"


async def test_a_pause_that_nobody_ends_ends_by_itself(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """A forgotten one does not blind the agent."""
    async with watching(simulated, tmp_path) as (watcher, path):
        assert await asked(path, verb="pause", seconds=0.3) == "paused"
        async with asyncio.timeout(10):
            while not watcher.is_up:  # noqa: ASYNC110 (another thread's)
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "request_line", [{"verb": "explode"}, {"verb": "pause"}, {"verb": "pause", "seconds": 0}, {"verb": "pause", "seconds": 1e9}, {}]
)
async def test_a_request_that_makes_no_sense_is_refused(simulated: SimulatedNvml, tmp_path: Path, request_line: dict[str, object]) -> None:
    """The watch goes on."""
    async with watching(simulated, tmp_path) as (watcher, path):
        with pytest.raises(UsageError, match="not understood"):
            await asked(path, **request_line)
        assert watcher.is_up


async def test_what_is_no_request_is_answered(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """A line that is no JSON, and a caller who leaves at once."""
    async with watching(simulated, tmp_path) as (_, path):
        _, leaving = await asyncio.open_unix_connection(path)
        leaving.close()
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.1\n")
        assert b"problem" in await reader.readline()
        writer.close()


async def test_only_the_agents_user_may_connect(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """The socket has mode 0600 from its first moment."""
    async with watching(simulated, tmp_path) as (_, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_second_agent_leaves_the_firsts_socket_alone(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """It says so and watches without one; a socket that an agent left behind is taken over."""
    async with watching(simulated, tmp_path) as (watcher, path):
        with capture_logs() as logs:
            async with control_socket(path, watcher):
                assert await asked(path, verb="status") == "watching"
        assert [entry["event"] for entry in logs] == ["no control socket"]
        assert await asked(path, verb="status") == "watching"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    async with control_socket(path, watcher):
        assert await asked(path, verb="status") == "no driver"


async def test_what_is_no_socket_is_left_alone(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """A wrong --control takes nobody's file away: there is no control socket then."""
    path = tmp_path / "job.yaml"
    path.write_text("precious")
    watcher, spool, _ = a_watcher(SimulatedNode(simulated, ONE_GPU), tmp_path)
    with capture_logs() as logs:
        async with control_socket(path, watcher):
            pass
    assert (path.read_text(), logs[0]["problem"]) == ("precious", "there is something else than a socket")
    spool.close()


def test_nobody_answers(tmp_path: Path) -> None:
    """The error says what to do."""
    with pytest.raises(ServiceUnavailableError, match="Start the agent"):
        ask(tmp_path / "control.sock", timeout_seconds=1.0, verb="status")


async def test_without_a_path_there_is_none(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """A simulation, for example."""
    watcher, spool, _ = a_watcher(SimulatedNode(simulated, ONE_GPU), tmp_path)
    async with control_socket(None, watcher):
        assert not (tmp_path / "control.sock").exists()
    spool.close()
