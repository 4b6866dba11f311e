"""Which prediction is meant where its name, or the request id that it was asked for under, may stand."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress

from peakgate.server.audit import AuditQueue
from peakgate.server.errors import PeakgateError
from peakgate.server.store.base import Store
from peakgate.v1.names import request_id_of

MOST_KNOWN = 65_536
"""Jobs whose agents report at one time; some 15 MB. What was known is then looked up once more."""


class Names:
    """Names of predictions by request id. A request id keeps its prediction, and one that a job uses does not expire, so what was found
    holds. On a pod of Kubernetes the uid of its Job stands, which nobody has to write there (docs/webhook.md)."""

    def __init__(self, store: Store, audit: AuditQueue) -> None:
        self._store = store
        self._audit = audit
        self._known: dict[str, str] = {}

    async def of(self, told: Collection[str]) -> Mapping[str, str]:
        """The names that are meant, of those told that are not names themselves. What nobody was asked for under stays as it is, and is
        then unknown like any other name. Raises STORE_UNAVAILABLE."""
        asked = {each: request_id for each in told if (request_id := request_id_of(each))}
        new = {each for each in asked.values() if each not in self._known}
        found = {**self._known_of(asked.values()), **(await self._looked_up(new) if new else {})}
        return {each: found[request_id] for each, request_id in asked.items() if request_id in found}

    def _known_of(self, request_ids: Collection[str]) -> dict[str, str]:
        return {each: self._known[each] for each in request_ids if each in self._known}

    async def _looked_up(self, request_ids: Collection[str]) -> dict[str, str]:
        """What still waits to be written is written first: another replica may have answered the same request, and then its row stays."""
        waiting = [row for each in request_ids if (row := self._audit.by_request(each)) is not None]
        if waiting:
            with suppress(PeakgateError):
                await self._audit.flush()
        stored = dict(await asyncio.to_thread(self._store.names_of, request_ids))
        if len(self._known) + len(stored) > MOST_KNOWN:
            self._known.clear()
        self._known |= stored
        return {row.request_id: row.prediction for row in waiting if row.request_id is not None} | stored
