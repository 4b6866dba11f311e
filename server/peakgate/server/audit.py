"""The queue between Predict and the database: writes never stand on Predict's path, and what waits can be read."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from peakgate.server.errors import PeakgateError
from peakgate.server.logs import Logger
from peakgate.server.metrics import Metrics
from peakgate.server.store.base import Store
from peakgate.server.store.records import PredictionRow

BATCH_ROWS = 500
"""Rows a transaction: the size at which batched inserts cost 6–15 µs a row."""

GATHER_SECONDS = 0.02
"""Wait for more rows of the same batch."""

RETRY_SECONDS = (0.1, 0.5, 2.0, 5.0)
"""Waits after failed batches; the last one repeats."""

LATE_SECONDS = 2.0
"""A row is written within some hundredths of a second; one that waits longer waits for the database."""

LIMIT_BYTES = 256 * 1024 * 1024
"""Of jobs that wait: documents may be large, and a database may be away for long."""


class AuditQueue:
    """Predictions on their way into the store. One task writes; everything else happens on the event loop."""

    def __init__(self, store: Store, *, limit: int, metrics: Metrics, log: Logger, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._limit = limit
        self._log = log
        self._monotonic = monotonic
        self._waiting: deque[PredictionRow] = deque()
        self._put_seconds: deque[float] = deque()
        self._by_name: dict[str, PredictionRow] = {}
        self._by_request: dict[str, PredictionRow] = {}
        self._wake = asyncio.Event()
        self._waiting_bytes = 0
        self._accepted = 0
        self._written = 0
        self._flushes: list[tuple[int, asyncio.Future[None]]] = []
        self._depth = metrics.series("peakgate_audit_queue_rows")
        self._dropped = metrics.series("peakgate_audit_dropped_total")
        self._up = metrics.series("peakgate_store_up")
        self._task: asyncio.Task[None] | None = None
        self.healthy = True

    def start(self) -> None:
        """Starts the writer."""
        self._up.set(1)
        self._task = asyncio.create_task(self._run(), name="audit writer")

    def put(self, row: PredictionRow) -> bool:
        """Takes a row; False when the queue is full, and then the prediction is not stored."""
        if len(self._waiting) >= self._limit or self._waiting_bytes >= LIMIT_BYTES:
            self._dropped.add()
            return False
        self._waiting.append(row)
        self._put_seconds.append(self._monotonic())
        self._waiting_bytes += len(row.content.job)
        self._by_name[row.prediction] = row
        if row.request_id is not None:
            self._by_request[row.request_id] = row
        self._accepted += 1
        self._wake.set()
        return True

    @property
    def writable(self) -> bool:
        """Whether the last write succeeded and no row waits for longer than a write takes."""
        return self.healthy and (not self._put_seconds or self._monotonic() - self._put_seconds[0] <= LATE_SECONDS)

    def by_name(self, prediction: str) -> PredictionRow | None:
        """A row that still waits."""
        return self._by_name.get(prediction)

    def by_request(self, request_id: str) -> PredictionRow | None:
        """A row that still waits, by its request id."""
        return self._by_request.get(request_id)

    async def flush(self) -> None:
        """Returns when everything that was put before is written. Raises STORE_UNAVAILABLE when the store is away."""
        if not self._waiting:
            return
        if not self.healthy:
            raise _away()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushes.append((self._accepted, done))
        await done

    async def stop(self, grace_seconds: float) -> int:
        """Writes what waits, for at most `grace_seconds`. Rows that are lost are logged and counted; returns how many."""
        with suppress(TimeoutError, PeakgateError):
            await asyncio.wait_for(self.flush(), grace_seconds)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        lost = len(self._waiting)
        if lost:
            self._dropped.add(lost)
            self._log.error("predictions were not stored", rows=lost, first=self._waiting[0].prediction, last=self._waiting[-1].prediction)
        return lost

    async def _run(self) -> None:
        failures = 0
        while True:
            await self._wake.wait()
            if not self._flushes:
                await asyncio.sleep(GATHER_SECONDS)
            batch = list(islice(self._waiting, BATCH_ROWS))
            self.healthy = await self._write(batch)
            self._up.set(1 if self.healthy else 0)
            if self.healthy:
                failures = 0
                self._forget(batch)
            else:
                failures += 1
            self._answer_flushes()
            if failures:
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1])

    async def _write(self, batch: list[PredictionRow]) -> bool:
        try:
            await asyncio.to_thread(self._store.add_predictions, batch)
        except PeakgateError as error:
            self._log.warning("store away", waiting_rows=len(self._waiting), cause=error.message)
            return False
        except Exception:  # noqa: BLE001 - the writer must outlive a defect; the rows stay and the metric shows it
            self._log.exception("audit batch failed", rows=len(batch))
            return False
        return True

    def _forget(self, batch: list[PredictionRow]) -> None:
        for row in batch:
            self._waiting.popleft()
            self._put_seconds.popleft()
            self._waiting_bytes -= len(row.content.job)
            self._by_name.pop(row.prediction, None)
            if row.request_id is not None:
                self._by_request.pop(row.request_id, None)
        self._written += len(batch)
        self._depth.set(len(self._waiting))
        if not self._waiting:
            self._wake.clear()

    def _answer_flushes(self) -> None:
        """Who waits for a flush learns that it is done, or that the store is away, and is never left waiting."""
        open_flushes = []
        for target, done in self._flushes:
            if done.done():
                continue
            if not self.healthy:
                done.set_exception(_away())
            elif self._written >= target:
                done.set_result(None)
            else:
                open_flushes.append((target, done))
        self._flushes = open_flushes


def _away() -> PeakgateError:
    return PeakgateError("STORE_UNAVAILABLE", "the database is away; its predictions wait in memory", hint="try again")
