"""Batches of many agents in one transaction: a batch is acknowledged after its commit, and commits are few."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from peakgate.server.errors import PeakgateError
from peakgate.server.store.base import Store
from peakgate.server.store.records import PeakRow, PhasePeakRow

GATHER_SECONDS = 0.02
"""Wait for more batches of the same transaction. An agent waits half a minute between two of its own."""

LARGEST_GROUP_ROWS = 4096
"""Rows of one transaction: sixteen full batches, some 50 ms of one core, after which other writers get their turn."""

LONGEST_QUEUE_ROWS = 65_536
"""Rows that may wait, some 70 MB: one batch of each of 8,000 nodes. What comes then is told to come again."""


ANSWERS_AT_ONCE = 8
"""Batches that are answered before other calls get their turn: some two milliseconds of the event loop."""


@dataclass(frozen=True, slots=True)
class _Batch:
    rows: Sequence[PeakRow]
    phases: Sequence[PhasePeakRow]
    committed: asyncio.Future[None]


class PeakWriter:
    """One transaction at a time. Batches that come meanwhile are the next one; its task lives as long as anybody waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[_Batch] = deque()
        self._waiting_rows = 0
        self._task: asyncio.Task[None] | None = None

    async def write(self, rows: Sequence[PeakRow], phases: Sequence[PhasePeakRow]) -> None:
        """Returns when the rows are committed. Raises STORE_UNAVAILABLE, also for the batches that were to be committed with them."""
        if self._waiting_rows >= LONGEST_QUEUE_ROWS:
            message = f"{self._waiting_rows} rows of observed peaks wait for the database"
            raise PeakgateError("STORE_UNAVAILABLE", message, hint="send the batch again later")
        batch = _Batch(rows, phases, asyncio.get_running_loop().create_future())
        self._waiting.append(batch)
        self._waiting_rows += len(rows)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="peak writer")
        await batch.committed

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER_SECONDS)
            group = self._next_group()
            try:
                await asyncio.to_thread(self._commit, group)
            except Exception as error:  # noqa: BLE001 - whoever waits raises it; the writer goes on with the next group
                await _answer(group, error)
            else:
                await _answer(group, None)

    def _next_group(self) -> list[_Batch]:
        group = [self._waiting.popleft()]
        rows = len(group[0].rows)
        while self._waiting and rows + len(self._waiting[0].rows) <= LARGEST_GROUP_ROWS:
            group.append(self._waiting.popleft())
            rows += len(group[-1].rows)
        self._waiting_rows -= rows
        return group

    def _commit(self, group: Sequence[_Batch]) -> None:
        rows = [row for batch in group for row in batch.rows]
        self._store.merge_peaks(rows, [phase for batch in group for phase in batch.phases])


async def _answer(group: Sequence[_Batch], error: Exception | None) -> None:
    """A few at a time: after a slow commit hundreds of calls wait for their answer, and predictions must not wait behind them all."""
    for number, batch in enumerate(group, 1):
        if number % ANSWERS_AT_ONCE == 0:
            await asyncio.sleep(0)
        if batch.committed.done():  # its call was cancelled; the agent sends the batch again
            continue
        if error is None:
            batch.committed.set_result(None)
        else:
            batch.committed.set_exception(error)
