"""Each server's look, every second, at what others have changed: another active version, ends of jobs that others were told."""

from __future__ import annotations

import asyncio

from peakgate.server.learning import Learner
from peakgate.server.lease import LeaseKeeper
from peakgate.server.store.base import Store
from peakgate.server.store.records import EndedKey

LOOK_SECONDS = 1.0
"""Two small statements; a replica answers with a new version within twice the time."""

MOST_ENDED = 500
"""Ended attempts that one look compares with the last one; what a longer list hides the sweep finds."""


class Follower:
    """Swaps in what another replica has learned; the writer also learns what another replica was told.

    An attempt is looked at again when its end was told anew. One that must wait for its last rows is left to the sweep.
    """

    def __init__(self, store: Store, learner: Learner, keeper: LeaseKeeper) -> None:
        self._store = store
        self._learner = learner
        self._keeper = keeper
        self._seen: frozenset[EndedKey] = frozenset()

    async def look(self) -> None:
        """One look. Raises STORE_UNAVAILABLE."""
        await self._learner.load()
        if self._keeper.lease is None:
            return
        ended = frozenset(await asyncio.to_thread(self._store.newest_ended, MOST_ENDED))
        names = {prediction for prediction, *_ in ended - self._seen}
        if names:
            await self._learner.learn(names)
        self._seen = ended
