"""A service beside the hook, in a process of its own, for when the real one is away: it judges by the memory model alone and keeps nothing.

A process, because judging takes a processor's whole time: the hook's event loop must answer meanwhile. It is started and warmed when the
hook starts, started anew when it ends, and ends with the hook, however that ends: it reads a pipe whose other end the hook holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from peakgate.client.errors import ServiceError
from peakgate.hooks.asking import Service
from peakgate.v1.document import parse_job
from peakgate.v1.prediction_service_pb2 import PredictRequest

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
WARM_SECONDS = 60.0
END_SECONDS = 1.0
WARM_JOBS = (
    {"model": {"preset": "llama-3.1-8b"}, "batch": {"micro_batch_size": 1, "sequence_length": 4096}, "gpu": {"type": "h100-80gb"}},
    {"model": {"preset": "gpt2"}, "batch": {"micro_batch_size": 1, "sequence_length": 1024}, "gpu": {"type": "h100-80gb"}},
)
"""One that does not fit, so that the search for a change is loaded as well, and one that does."""

LEFT_OUT = frozenset({"PEAKGATE_DATABASE_URL", "PEAKGATE_SERVER"})


class Beside:
    """`service` is None until the process is warm, and while it is started anew."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self.service: Service | None = None
        self.pid = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keeps the process alive while the block runs."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping

    async def _keep(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                if await self._run_once():
                    pause = FIRST_PAUSE_SECONDS
            except (OSError, ServiceError, ValueError) as error:
                self._tell("error", f"the service beside the hook does not start: {error}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _run_once(self) -> bool:
        """Until the process ends; whether it was of use."""
        variables = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "peakgate.hooks.beside_process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=variables,
        )  # fmt: skip
        self.pid = process.pid
        service: Service | None = None
        try:
            assert process.stdout is not None  # noqa: S101 - asked for above
            target = (await process.stdout.readline()).decode().strip()
            if not target:
                raise ValueError(f"it ended with status {await process.wait()}")
            service = Service(target)
            await _warm(service)
            self.service = service
            self._tell("info", f"the service beside the hook is ready, process {process.pid}")
            self._tell("error", f"the service beside the hook ended with status {await process.wait()}")
            return True
        finally:
            self.service, self.pid = None, 0
            if service is not None:
                await service.channel.close()
            await _ended(process)


async def _warm(service: Service) -> None:
    """The first answer loads the model; a submission does not wait for it."""
    for document in WARM_JOBS:
        await service.predict(PredictRequest(job=parse_job(document)), WARM_SECONDS)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Closes its pipe, and waits; one that does not heed that is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
