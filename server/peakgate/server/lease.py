"""This server's part in the lease of the margin's one writer (docs/adr/0013-the-writer-holds-a-lease.md)."""

from __future__ import annotations

import asyncio
import uuid

from peakgate.server.logs import Logger
from peakgate.server.metrics import Metrics
from peakgate.server.store.base import Store
from peakgate.server.store.records import Lease

LEASE_SECONDS = 10.0
"""That a writer who was killed is waited for."""

RENEW_SECONDS = 3.0
"""Three renewals may fail before another server takes over."""


class LeaseKeeper:
    """Takes the lease when it is free, and renews it. What it believes of it only saves work: the store checks it with each write."""

    def __init__(self, store: Store, *, metrics: Metrics, log: Logger) -> None:
        self._store = store
        self._holder = uuid.uuid4().hex
        self._writes = metrics.series("peakgate_calibration_writer")
        self._log = log
        self.lease: Lease | None = None
        """None: another server is the writer."""

    async def keep(self, *, by_force: bool = False) -> bool:
        """Takes or renews the lease; `by_force` from whoever has it. True when it was just let in. Raises STORE_UNAVAILABLE."""
        fence = await asyncio.to_thread(self._store.take_lease, self._holder, seconds=LEASE_SECONDS, by_force=by_force)
        before, self.lease = self.lease, Lease(self._holder, fence) if fence is not None else None
        if self.lease != before:
            self._writes.set(float(self.lease is not None))
            self._log.info("calibration writer", here=self.lease is not None, fence=fence)
        return self.lease is not None and self.lease != before

    async def give_up(self) -> None:
        """Lets another server in at once. Raises STORE_UNAVAILABLE."""
        if self.lease is not None:
            self.lease = None
            self._writes.set(0.0)
            await asyncio.to_thread(self._store.give_up_lease, self._holder)
