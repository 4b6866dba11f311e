"""Empties the spool into the service: at an interval, and at once when something ended.

At least once: a row leaves the spool when the service has answered the batch it was in.
Repeats are harmless, because peaks merge by maximum.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc.aio
import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from peakgate.agent.errors import MessageRefusedError, ServiceUnavailableError
from peakgate.agent.pace import jittered
from peakgate.agent.peaks import JobEvent
from peakgate.agent.spool import Spool, SpooledPeak
from peakgate.agent.transport import CALL_TIMEOUT_SECONDS, REFUSED_EVENT_CODES, Transport, as_agent_error
from peakgate.agent.wire import NodeIdentity, batch_message, event_message
from peakgate.v1 import telemetry_service_pb2 as pb

if TYPE_CHECKING:  # absent at run time
    from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceAsyncStub

MAX_BATCH_ROWS = 256
"""What the service takes in one message."""
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 300.0
"""From one second on, doubled: a service that comes back is found within five minutes by all, and not by all at once."""

log = structlog.get_logger("peakgate.agent.sender")

Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class Delivery:
    """What became of what was sent, since the start."""

    batches: int = 0
    stored: int = 0
    events: int = 0
    failures: int = 0
    answered_at: float = 0.0
    """Seconds since the epoch; 0: not yet."""
    refused: Counter[str] = field(default_factory=Counter)
    """Rows and events that the service will never take, by its reason."""


class Sender:
    """Sends what the spool holds. Lives in one event loop."""

    def __init__(
        self,
        *,
        spool: Spool,
        transport: Transport,
        stub: TelemetryServiceAsyncStub,
        node: Callable[[], NodeIdentity],
        interval_seconds: float,
        uniform: Callable[[float, float], float] = random.uniform,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._spool = spool
        self._transport = transport
        self._stub = stub
        self._node = node
        self._interval_seconds = interval_seconds
        self._uniform = uniform
        self._wall = wall
        self._retry_after_seconds = 0.0
        self.delivery = Delivery()

    async def run(self, *, wake: asyncio.Event, stop: asyncio.Event) -> None:
        """Sends until `stop`; `wake` (set also when `stop` is) sends at once."""
        while not stop.is_set():
            await self.drain_patiently(sleep=lambda seconds: _wait(stop, seconds), given_up=stop.is_set)
            pause = jittered(self._interval_seconds, self._uniform)
            await _wait(stop, self._retry_after_seconds)
            await _wait(wake, max(0.0, pause - self._retry_after_seconds))
            wake.clear()

    async def drain_patiently(self, *, sleep: Sleep, given_up: Callable[[], bool]) -> None:
        """Drains; while the service is away it tries again with back-off and full jitter, until `given_up` says so."""
        attempts = AsyncRetrying(
            sleep=sleep,
            wait=self._backoff_seconds,
            retry=retry_if_exception_type((ServiceUnavailableError, sqlite3.Error)),  # a full disk is waited out as well
            stop=lambda _: given_up(),
            before_sleep=self._say_unavailable,
            retry_error_callback=lambda _: None,
        )
        await attempts(self.drain)

    async def drain(self) -> None:
        """Sends what the spool holds now, peaks before the ends of their jobs. Raises ServiceUnavailableError."""
        events = self._spool.events()
        latest = self._spool.latest_version()
        while peaks := self._spool.batch(limit=MAX_BATCH_ROWS, up_to_version=latest):
            await self._send(peaks)
        for event in events:
            await self._send_event(event)

    async def _send(self, peaks: list[SpooledPeak]) -> None:
        """Sends these rows; when the service takes none of them because of one, halves until that one is found and dropped."""
        key = peaks[0].row.key
        sequence = self._spool.next_sequence(boot_id=key.boot_id)
        rows = [peak.row for peak in peaks]
        message = batch_message(node=self._node(), rows=rows, cluster=key.cluster, boot_id=key.boot_id, sequence=sequence)
        try:
            answer = await self._transport.send(message)
        except MessageRefusedError as error:
            await self._send_halves(peaks, error)
            return
        self._spool.acknowledge(peaks)
        self._note(peaks, answer)

    async def _send_halves(self, peaks: list[SpooledPeak], error: MessageRefusedError) -> None:
        if len(peaks) > 1:
            middle = len(peaks) // 2
            await self._send(peaks[:middle])
            await self._send(peaks[middle:])
            return
        self._spool.acknowledge(peaks)
        self._drop(peaks[0], "MESSAGE_REFUSED", error.message)

    async def _send_event(self, event: JobEvent) -> None:
        try:
            await self._stub.ReportJobEvent(event_message(event), timeout=CALL_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            problem = as_agent_error(error, REFUSED_EVENT_CODES)
            if isinstance(problem, ServiceUnavailableError):
                raise problem from error
            self.delivery.refused["EVENT_REFUSED"] += 1
            log.warning("event refused", job=event.job, prediction=event.prediction, reason=problem.message)
        else:
            self.delivery.events += 1
        self._spool.acknowledge_event(event)

    def _note(self, peaks: list[SpooledPeak], answer: pb.ReportPeaksResponse) -> None:
        self.delivery.batches += 1
        self.delivery.answered_at = self._wall()
        self.delivery.stored += answer.stored
        self._retry_after_seconds = answer.retry_after.ToTimedelta().total_seconds()
        for refused in answer.refused:
            if 0 <= refused.index < len(peaks):
                self._drop(peaks[refused.index], refused.reason, refused.message)

    def _drop(self, peak: SpooledPeak, reason: str, message: str) -> None:
        self.delivery.refused[reason] += 1
        key = peak.row.key
        log.warning(
            "peak refused", reason=reason, message=message, gpu=key.gpu_uuid, job=key.job, pid=key.pid, peak_bytes=peak.row.peak_bytes
        )

    def _backoff_seconds(self, state: RetryCallState) -> float:
        """Full jitter: between nothing and the doubled ceiling; never earlier than the service asked for."""
        ceiling = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(state.attempt_number - 1, 30))
        return max(self._uniform(0.0, ceiling), _asked_seconds(state))

    def _say_unavailable(self, state: RetryCallState) -> None:
        self.delivery.failures += 1
        problem = state.outcome.exception() if state.outcome else None
        log.warning("service unavailable", problem=str(problem), attempt=state.attempt_number, next_seconds=round(state.upcoming_sleep, 1))


def _asked_seconds(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after_seconds if isinstance(error, ServiceUnavailableError) else 0.0


async def _wait(event: asyncio.Event, seconds: float) -> None:
    if seconds <= 0 and not event.is_set():
        return
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
