"""The calls: a history comes in over a stream or out of the store, and is replayed in a thread of its own."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from google.protobuf.timestamp_pb2 import Timestamp

from peakgate.calibration.gate import VALUE_INVALID
from peakgate.server.clock import MICROSECONDS, Clock, from_timestamp
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.judge import Judge
from peakgate.server.pages import make_token, page_size, read_token
from peakgate.server.policy import Policy
from peakgate.server.simulation.history import attempt_of
from peakgate.server.simulation.past import Past, PastReader, RefusedError
from peakgate.server.simulation.policies import Candidate, candidates
from peakgate.server.simulation.result import MOST_NAMED, Terms, simulate
from peakgate.server.store.base import Store
from peakgate.server.store.records import Place
from peakgate.v1 import calibration_simulation_pb2 as pb
from peakgate.v1.times import LATEST_SECONDS

OVERRIDE_SHARE = 0.05
OOM_COST, REJECTION_COST = 19.0, 1.0
"""The prices under which α = 5 %, the default, is right: 1/(1 + 19)."""

MOST_ATTEMPTS = 100_000
PAGE_BYTES = 1 << 20
"""Of a page; jobs differ in size by a factor of a thousand."""
READ_AT_ONCE = 1000
"""Rows of the store's own history."""


@dataclass(slots=True)
class _Read:
    """What was read of a history so far."""

    history: list[Past] = field(default_factory=list)
    refused: list[pb.RefusedAttempt] = field(default_factory=list)
    refused_attempts: int = 0

    def take(self, attempts: Iterable[pb.PastAttempt], reader: PastReader) -> None:
        """Reads some more."""
        for attempt in attempts:
            if len(self.history) + self.refused_attempts >= MOST_ATTEMPTS:
                raise PeakgateError("HISTORY_TOO_LARGE", f"attempts: more than {MOST_ATTEMPTS}; send those of a shorter time")
            try:
                self.history.append(reader.read(attempt))
            except RefusedError as error:
                self._refuse(attempt, error)

    def _refuse(self, attempt: pb.PastAttempt, error: RefusedError) -> None:
        self.refused_attempts += 1
        if len(self.refused) < MOST_NAMED:
            refused = pb.RefusedAttempt(line=attempt.line, attempt=attempt.attempt, reason=error.reason, message=error.message)
            self.refused.append(refused)


class Simulations:
    """Replays histories, one at a time, beside the service's other work."""

    def __init__(self, judge: Judge, store: Store, *, clock: Clock) -> None:
        self._judge = judge
        self._store = store
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="simulate")

    async def simulate(self, requests: AsyncIterator[pb.SimulateCalibrationRequest]) -> pb.SimulateCalibrationResponse:
        """What each policy would have done. Raises FIELD_INVALID, HISTORY_TOO_LARGE and HISTORY_UNUSABLE."""
        stopping = threading.Event()
        try:
            return await self._simulated(requests, stopping)
        finally:
            stopping.set()  # a caller that has gone away ends the work

    async def _simulated(
        self, requests: AsyncIterator[pb.SimulateCalibrationRequest], stopping: threading.Event
    ) -> pb.SimulateCalibrationResponse:
        run, policy, memory = partial(asyncio.get_running_loop().run_in_executor, self._thread), self._judge.policy, self._judge.memory
        reader = PastReader(memory, reserve_bytes=policy.operator_reserve_bytes, now=self._clock() / MICROSECONDS)
        read, asked = _Read(), None
        async for request in requests:
            asked = asked if asked is not None else _asked(request.settings, policy)  # refused before the rest is sent
            await run(read.take, request.attempts, reader)
        asked = asked if asked is not None else _asked(pb.SimulationSettings(), policy)
        if asked.own_history:
            await run(self._read_own, asked.since_us, read, reader)
        _check_usable(read)
        response = await run(partial(simulate, read.history, asked.policies, asked.terms, memory, stopped=stopping.is_set))
        response.refused.extend(read.refused)
        response.refused_attempts = read.refused_attempts
        return response

    async def export(self, request: pb.ExportHistoryRequest) -> pb.ExportHistoryResponse:
        """A page of the service's own history."""
        size = page_size(request.page_size)
        position = read_token("history", request.page_token, places=(int, str, str, int))
        after = _place(position) if position is not None else None
        since_us = _since_us(request.since_time, "since_time")
        rows = await asyncio.to_thread(self._store.past_attempts, since_us=since_us, after=after, limit=size + 1)
        page, taken = pb.ExportHistoryResponse(), 0
        for row in rows[:size]:
            attempt = attempt_of(row)
            taken += attempt.ByteSize()
            if page.attempts and taken > PAGE_BYTES:
                break
            page.attempts.append(attempt)
        if len(page.attempts) < len(rows):
            page.next_page_token = make_token("history", *rows[len(page.attempts) - 1].place)
        return page

    def _read_own(self, since_us: int, read: _Read, reader: PastReader) -> None:
        after: Place | None = None
        while rows := self._store.past_attempts(since_us=since_us, after=after, limit=READ_AT_ONCE):
            read.take((attempt_of(row) for row in rows), reader)
            after = rows[-1].place


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The settings, read."""

    policies: Sequence[Candidate]
    terms: Terms
    own_history: bool
    since_us: int


def _asked(settings: pb.SimulationSettings, site: Policy) -> _Asked:
    terms = _terms(settings)
    chosen = candidates(settings.policies, site=site, oom_cost=terms.oom_cost, rejection_cost=terms.rejection_cost)
    since_us = _since_us(settings.since_time, "settings.since_time")
    return _Asked(policies=chosen, terms=terms, own_history=settings.own_history, since_us=since_us)


def _since_us(moment: Timestamp, field: str) -> int:
    if not 0 <= moment.seconds <= LATEST_SECONDS:
        raise field_error(field, "lies outside 1970 to 9999")
    return from_timestamp(moment)


def _place(position: tuple[int | str, ...]) -> Place:
    finished_us, prediction, job, restart = position
    return int(finished_us), str(prediction), str(job), int(restart)


def _terms(settings: pb.SimulationSettings) -> Terms:
    share = settings.override_share if settings.HasField("override_share") else OVERRIDE_SHARE
    if not 0 <= share <= 1:
        raise field_error("settings.override_share", f"is {share}; it must lie between 0 and 1")
    costs = {"oom_cost": settings.oom_cost or OOM_COST, "rejection_cost": settings.rejection_cost or REJECTION_COST}
    for name, cost in costs.items():
        if not (math.isfinite(cost) and cost > 0):
            raise field_error(f"settings.{name}", f"is {cost}; it must be a positive number")
    return Terms(override_share=share, **costs)


def _check_usable(read: _Read) -> None:
    if read.history:
        return
    if not read.refused:
        raise PeakgateError("HISTORY_UNUSABLE", "the history is empty: there is nothing to replay")
    first = read.refused[0]
    place = f"line {first.line}" if first.line else first.attempt or VALUE_INVALID
    raise PeakgateError(
        "HISTORY_UNUSABLE", f"none of the {read.refused_attempts} attempts can be used; {place}: {first.reason}: {first.message}"
    )
