"""A rejected job that runs all the same: within a budget, for a reason, and recorded, or not at all.

Of a rejected job nothing would ever be seen, and a service that rejects in vain could not learn that it does. What a try shows is learned
as of any job.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from dataclasses import dataclass, replace

from google.protobuf.timestamp_pb2 import Timestamp

from peakgate.server.answer import pack, unpack
from peakgate.server.classing import OUT_OF_MEMORY
from peakgate.server.clock import DAY_US, MICROSECONDS, Clock, to_timestamp
from peakgate.server.errors import PeakgateError
from peakgate.server.logs import Logger
from peakgate.server.metrics import Metrics
from peakgate.server.store.base import Store
from peakgate.server.store.records import REQUEST_CHARACTERS, PredictionRow, Spent, StoredPrediction
from peakgate.v1.prediction_pb2 import PredictResponse, TryAnyway
from peakgate.v1.prediction_service_pb2 import Try

GRANTED, SPENT, AWAY = "granted", "spent", "away"

REFUSALS = {
    "off": "the operator allows no tries (PEAKGATE_TRIES_PER_DAY is 0)",
    "no_user": "nobody said who submits it: state user",
    "no_reason": "no reason is stated",
    "not_kept": "nothing is stored of this request, and a try that is not recorded is not granted",
    AWAY: "the database is away, and a try that is not recorded is not granted: ask again later",
}
"""Word of the metric -> why not."""

OUTCOMES = (GRANTED, SPENT, *REFUSALS)
"""Every word of the metric."""

UNSEEN_ENDS = ("CUT_SHORT", "END_UNKNOWN", "NO_SECOND_STEP", "NO_PEAKS", "HARDWARE_ERROR")
"""Reasons of observations after which nobody knows whether the whole job would have fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of a wish. `row` has the answer that says so, and is stored already when the try was granted."""

    row: PredictionRow
    said: TryAnyway


class Tries:
    """Grants tries."""

    def __init__(self, store: Store, *, limit: int, clock: Clock, metrics: Metrics, log: Logger) -> None:
        self._store = store
        self._limit = limit
        self._clock = clock
        self._metrics = metrics
        self._log = log

    async def ask(self, row: PredictionRow, reason: str, *, is_away: bool) -> Asked:
        """Grants a try of the rejection in `row`, with which it is stored, or says why not."""
        word = self._refusal(row.user, reason) or (AWAY if is_away else "")
        if not word:
            try:
                return await self._spend(row, reason)
            except PeakgateError:
                word = AWAY
        return self._told(row, reason, word, refused(word, limit=self._limit))

    def refuse_unkept(self, answer: PredictResponse, user: str, reason: str) -> None:
        """Says in an answer of which nothing is stored that no try of it can be."""
        word = self._refusal(user, reason) or "not_kept"
        self._metrics.series("peakgate_tries_total", outcome=word).add()
        add_to(answer, refused(word, limit=self._limit))

    def _refusal(self, user: str, reason: str) -> str:
        if not self._limit:
            return "off"
        return "no_user" if not user else "no_reason" if not reason.strip() else ""

    async def _spend(self, row: PredictionRow, reason: str) -> Asked:
        def complete(named: PredictionRow, spent: Spent) -> PredictionRow:
            return _with(named, granted(named.user, spent, limit=self._limit))

        since_us = self._clock() - DAY_US
        spent = await asyncio.to_thread(self._store.spend_try, row, reason, since_us=since_us, limit=self._limit, complete=complete)
        if not spent.prediction:
            return self._told(row, reason, SPENT, used_up(row.user, spent, limit=self._limit))
        named = replace(row, prediction=spent.prediction)
        return self._told(named, reason, GRANTED, granted(row.user, spent, limit=self._limit))

    def _told(self, row: PredictionRow, reason: str, outcome: str, said: TryAnyway) -> Asked:
        self._metrics.series("peakgate_tries_total", outcome=outcome).add()
        self._log.info("try", prediction=row.prediction, user=row.user, reason=reason, outcome=outcome, left=said.left)
        return Asked(row=_with(row, said), said=said)


def refused(word: str, *, limit: int) -> TryAnyway:
    """Not granted, for one of REFUSALS."""
    return TryAnyway(message=f"it may not run all the same: {REFUSALS[word]}", limit=limit)


def granted(user: str, spent: Spent, *, limit: int) -> TryAnyway:
    """One was spent."""
    used = len(spent.created_us)
    message = f"{user} may run it all the same (try {used} of {limit} in 24 hours)"
    return TryAnyway(granted=True, message=message, left=max(0, limit - used), limit=limit, next_time=_next_time(spent, limit))


def used_up(user: str, spent: Spent, *, limit: int) -> TryAnyway:
    """None was left; when the next one is, to a whole minute that is not too early."""
    free_us = spent.created_us[-limit] + DAY_US
    free = to_timestamp(free_us + 60 * MICROSECONDS - 1).ToDatetime()
    used = f"{user} has used all tries of 24 hours ({limit})"
    message = f"it may not run all the same: {used}; the next one is free at {free:%Y-%m-%d %H:%M} UTC"
    return TryAnyway(message=message, limit=limit, next_time=to_timestamp(free_us))


def _next_time(spent: Spent, limit: int) -> Timestamp | None:
    """When the oldest of those that fill the budget is a day old; None while some are left."""
    return to_timestamp(spent.created_us[-limit] + DAY_US) if len(spent.created_us) >= limit else None


def add_to(answer: PredictResponse, said: TryAnyway) -> None:
    """Says in an answer what became of the wish; the verdict stays what it is."""
    answer.try_anyway.CopyFrom(said)
    answer.reason = f"{answer.reason}; {said.message}"


def _with(row: PredictionRow, said: TryAnyway) -> PredictionRow:
    answer = unpack(row.content.answer)
    add_to(answer, said)
    return replace(row, content=replace(row.content, answer=pack(answer)))


def name_of_request(name: str, digest: str) -> str:
    """A new prediction's name whose random part is that of the request instead: two replicas that are asked at once know it again."""
    fixed = uuid.UUID(bytes=hashlib.sha256(digest.encode()).digest()[:16], version=4).hex  # its variant is that of version 7
    return name[:-REQUEST_CHARACTERS] + fixed[-REQUEST_CHARACTERS:]


def try_message(stored: StoredPrediction) -> Try | None:
    """The try of a prediction, and what came of it; None when there was none."""
    if stored.tried is None:
        return None
    return Try(reason=stored.tried.reason, create_time=to_timestamp(stored.tried.created_us), outcome=outcome_of(stored))


def outcome_of(stored: StoredPrediction) -> str:
    """What came of a job that ran: oom, fitted, or unknown while nobody has seen enough of it."""
    rows = stored.observations
    if stored.state == "oom" or any(row.reason == OUT_OF_MEMORY for row in rows):
        return "oom"
    has_fitted = any(row.upper_bytes is not None for row in rows)
    has_ended_well = stored.state == "finished" and bool(rows) and not any(row.reason in UNSEEN_ENDS for row in rows)
    return "fitted" if has_fitted or has_ended_well else "unknown"
