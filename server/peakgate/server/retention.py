"""How long peaks and events are kept, and the work of deleting them a batch at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from peakgate.server.clock import DAY_US, Clock
from peakgate.server.metrics import Metrics
from peakgate.server.store.base import Store

TABLES = ("peaks", "job_events")

BATCH_ROWS = 500
"""Rows that one transaction deletes: a few milliseconds, in which agents wait."""

MOST_BATCHES = 200
"""Of one run: 100,000 rows in ten minutes are 14 million a day; 10,000 nodes of 8 GPUs whose jobs take two hours write a million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Days that peaks and events are kept after they have been made use of."""

    peaks_days: float = 30.0
    events_days: float = 90.0


class Forgetter:
    """Deletes what is older."""

    def __init__(self, store: Store, retention: Retention, *, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._retention = retention
        self._clock = clock
        self._metrics = metrics

    async def run(self) -> dict[str, int]:
        """Deletes what is old, or as much of it as one run does. Returns rows by table. Raises STORE_UNAVAILABLE."""
        deleted = dict.fromkeys(TABLES, 0)
        for _ in range(MOST_BATCHES):
            batch = await asyncio.to_thread(self._batch)
            for table, rows in batch.items():
                deleted[table] += rows
                self._metrics.series("peakgate_rows_deleted_total", table=table).add(rows)
            if all(rows < BATCH_ROWS for rows in batch.values()):
                break
        return deleted

    def _batch(self) -> dict[str, int]:
        now_us = self._clock()
        peaks_before_us = now_us - int(self._retention.peaks_days * DAY_US)
        events_before_us = now_us - int(self._retention.events_days * DAY_US)
        return self._store.forget(peaks_before_us=peaks_before_us, events_before_us=events_before_us, limit=BATCH_ROWS)
