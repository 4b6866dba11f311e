"""A TelemetryService that records, and the agent as a process of its own beside it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from peakgate.v1 import telemetry_service_pb2 as pb
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceServicer, add_TelemetryServiceServicer_to_server

Context = grpc.aio.ServicerContext[object, object]

PROGRAM = """
import json, sys
from pathlib import Path
from peakgate.agent.main import run_agent
from peakgate.agent.told import PATHS
options = json.loads(sys.argv[1])
options |= {name: Path(options[name]) for name in PATHS if options.get(name)}
sys.exit(run_agent(**options))
"""

IN_A_HURRY = """
import json, sys
from pathlib import Path
from peakgate.agent.main import run
from peakgate.agent.options import Options
options = json.loads(sys.argv[1])
options["spool"] = Path(options["spool"])
sys.exit(run(Options(last_drain_seconds=1.0, **options)))
"""

ON_A_FULL_DISK = (
    """
import sqlite3
from peakgate.agent.spool import Spool
def put(self, *, rows, events=()):
    raise sqlite3.OperationalError("database or disk is full")
Spool.put = put
"""
    + PROGRAM
)

WITHOUT_A_DRIVER = (
    """
import pynvml
def nvmlInit():
    raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
pynvml.nvmlInit = nvmlInit
"""
    + PROGRAM
)

Answer = Callable[[pb.ReportPeaksRequest], Awaitable[pb.ReportPeaksResponse]]


async def store(batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
    """Takes everything."""
    return pb.ReportPeaksResponse(sequence=batch.sequence, stored=len(batch.peaks))


async def hang(batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
    """Never answers."""
    await asyncio.sleep(3600)
    return await store(batch)


class RecordingService(TelemetryServiceServicer):
    """Keeps what came, and answers as told."""

    def __init__(self, answer: Answer = store) -> None:
        self.answer = answer
        self.unary: list[pb.ReportPeaksRequest] = []
        self.streamed: list[pb.ReportPeaksRequest] = []
        self.events: list[pb.ReportJobEventRequest] = []

    @property
    def batches(self) -> list[pb.ReportPeaksRequest]:
        """All batches, however they came."""
        return self.unary + self.streamed

    def peaks(self) -> dict[tuple[str, int, str], pb.PeakSample]:
        """The highest row by (GPU, pid, prediction), ended if any was, as a store would merge them."""
        found: dict[tuple[str, int, str], pb.PeakSample] = {}
        for peak in (peak for batch in self.batches for peak in batch.peaks):
            known = found.setdefault((peak.gpu_uuid, peak.pid, peak.prediction), peak)
            known.peak_bytes = max(known.peak_bytes, peak.peak_bytes)
            known.ended = known.ended or peak.ended
        return found

    async def ReportPeaks(self, request: pb.ReportPeaksRequest, context: Context) -> pb.ReportPeaksResponse:
        """A batch by itself."""
        self.unary.append(request)
        return await self.answer(request)

    async def StreamPeaks(
        self,
        request_iterator: AsyncIterator[pb.StreamPeaksRequest],
        context: Context,
    ) -> AsyncIterator[pb.StreamPeaksResponse]:
        """Batches of a stream."""
        async for message in request_iterator:
            self.streamed.append(message.batch)
            yield pb.StreamPeaksResponse(ack=await self.answer(message.batch))

    async def ReportJobEvent(self, request: pb.ReportJobEventRequest, context: Context) -> pb.ReportJobEventResponse:
        """A job's end."""
        self.events.append(request)
        return pb.ReportJobEventResponse()

    async def ListCards(self, request: pb.ListCardsRequest, context: Context) -> pb.ListCardsResponse:
        """No agent asks."""
        return pb.ListCardsResponse()


@asynccontextmanager
async def serving(service: RecordingService, port: int = 0) -> AsyncIterator[int]:
    """The service on 127.0.0.1; gives its port. It is cut off at once at the end, as a killed process would be."""
    server = grpc.aio.server()
    add_TelemetryServiceServicer_to_server(service, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(grace=None)


@asynccontextmanager
async def a_process(
    *arguments: str, environment: dict[str, str] | None = None, folder: Path | None = None, talks: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that is ended with the test. `talks`: its input and output are the test's, and not only its errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=folder,
        env=os.environ | (environment or {}),
        stdin=pipe if talks else None,
        stdout=pipe if talks else None,
        stderr=pipe,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def an_agent(port: int, folder: Path, *, program: str = PROGRAM, **changes: object) -> AsyncIterator[asyncio.subprocess.Process]:
    """`peakgate agent` on the simulated NVML, reporting every 0.3 s; options may be changed."""
    options: dict[str, object] = {
        "server": f"127.0.0.1:{port}",
        "simulate": "demo",
        "node": "node-1",
        "cluster": "alpha",
        "spool": str(folder / "agent.db"),
        "once": False,
        "duration_seconds": 60.0,
        "transport": "unary",
        "metrics_port": None,
        "interval_seconds": 0.3,
    }
    environment = {"XDG_CACHE_HOME": str(folder.parent / "cache")}  # one compilation for all tests of the run
    async with a_process(sys.executable, "-c", program, json.dumps(options | changes), environment=environment) as process:
        yield process


async def until(condition: Callable[[], object], *, seconds: float = 30.0) -> None:
    """Waits for the condition; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (the condition is another process's)
            await asyncio.sleep(0.02)
