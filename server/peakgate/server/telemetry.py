"""TelemetryService: what agents saw. A row is acknowledged after it is committed, never before."""

# ruff: noqa: ARG002, N802 - gRPC names the methods and their arguments
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import cast

import grpc

from peakgate.server.audit import AuditQueue
from peakgate.server.clock import Clock, from_timestamp, to_timestamp
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.intake import LONGEST_TEXT, Refusal, accept, phases_of
from peakgate.server.joining import Names
from peakgate.server.learning import Learner
from peakgate.server.logs import Logger
from peakgate.server.metrics import Metrics
from peakgate.server.pages import make_token, page_size, read_token
from peakgate.server.peak_writer import PeakWriter
from peakgate.server.store.base import Store
from peakgate.server.store.records import EVENTS, TERMINAL_EVENTS, CardPlace, EventRow, NodeCardRow, PeakRow, PhasePeakRow
from peakgate.v1 import telemetry_service_pb2 as pb
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceServicer
from peakgate.v1.times import LATEST_SECONDS

LARGEST_BATCH_ROWS = 256
"""Rows of one batch: some 64 KB, one transaction of a few milliseconds."""

LONGEST_ORIGIN = 32
"""Characters of the column (store/tables.py)."""

Context = grpc.aio.ServicerContext[object, object]


class TelemetryService(TelemetryServiceServicer):
    """Takes batches of peaks and job events, and tells what cards they were seen on."""

    def __init__(self, store: Store, audit: AuditQueue, learner: Learner, *, clock: Clock, metrics: Metrics, log: Logger) -> None:
        self._store = store
        self._writer = PeakWriter(store)
        self._audit = audit
        self._names = Names(store, audit)
        self._learner = learner
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._stored_rows = metrics.series("peakgate_peaks_stored_total")

    async def ReportPeaks(self, request: pb.ReportPeaksRequest, context: Context) -> pb.ReportPeaksResponse:
        """Stores the good rows of a batch and answers every row."""
        return await self._take(request)

    async def StreamPeaks(
        self, request_iterator: AsyncIterator[pb.StreamPeaksRequest], context: Context
    ) -> AsyncIterator[pb.StreamPeaksResponse]:
        """The same over one stream: one answer a message, in order. A batch that is refused as a whole is answered row by row."""
        async for message in request_iterator:
            yield pb.StreamPeaksResponse(ack=await self._take_or_refuse(message.batch))

    async def ReportJobEvent(self, request: pb.ReportJobEventRequest, context: Context) -> pb.ReportJobEventResponse:
        """Stores the start or the end of a job, and learns from its end."""
        event = read_event(request, received_us=self._clock())
        meant = await self._names.of({event.prediction})
        event = replace(event, prediction=meant.get(event.prediction, event.prediction))
        await self._store_event(event)
        if event.prediction and event.event in TERMINAL_EVENTS:
            await self._learn({event.prediction})
        return pb.ReportJobEventResponse()

    async def ListCards(self, request: pb.ListCardsRequest, context: Context) -> pb.ListCardsResponse:
        """What cards the nodes have, as far as jobs ran on them."""
        size, kind = page_size(request.page_size), f"cards/{request.cluster}"
        after = read_token(kind, request.page_token, places=(str, str, str, int))
        place = cast("CardPlace | None", after)
        rows = await asyncio.to_thread(self._store.node_cards, limit=size + 1, after=place, cluster=request.cluster)
        last = rows[size - 1] if len(rows) > size else None
        token = make_token(kind, last.cluster, last.node, last.gpu_name, last.total_bytes) if last is not None else ""
        return pb.ListCardsResponse(cards=[_node_card(row) for row in rows[:size]], next_page_token=token)

    async def _take(self, request: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        _check_batch(request)
        received_us = self._clock()
        await self._name(request)
        rows, phases, refused = sort_out(request, received_us=received_us)
        if rows:
            await self._flush({row.prediction for row in rows if row.prediction})
            await self._writer.write(rows, phases)
            self._stored_rows.add(len(rows))
        self._count(refused, request.node)
        ended = {row.prediction for row in rows if row.ended and row.pid == 0 and row.prediction}
        if ended:
            await self._learn(ended)
        return pb.ReportPeaksResponse(sequence=request.sequence, stored=len(rows), refused=refused, server_time=to_timestamp(received_us))

    async def _name(self, request: pb.ReportPeaksRequest) -> None:
        """In place of request ids the names of their predictions, so that all rows of a job are of one prediction."""
        meant = await self._names.of({sample.prediction for sample in request.peaks})
        for sample in request.peaks if meant else ():
            sample.prediction = meant.get(sample.prediction, sample.prediction)

    async def _take_or_refuse(self, batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        try:
            _check_batch(batch)
        except PeakgateError as error:
            refused = [pb.RefusedPeak(index=index, reason=error.reason, message=error.message) for index in range(len(batch.peaks))]
            self._count(refused, batch.node)
            return pb.ReportPeaksResponse(sequence=batch.sequence, refused=refused, server_time=to_timestamp(self._clock()))
        return await self._take(batch)

    async def _store_event(self, event: EventRow) -> None:
        await self._flush({event.prediction})
        await asyncio.to_thread(self._store.add_event, event)

    async def _flush(self, names: set[str]) -> None:
        """So that a prediction that was just made is bound to its job. Observations do not wait for predictions that cannot be written."""
        if any(self._audit.by_name(name) for name in names):
            with suppress(PeakgateError):
                await self._audit.flush()

    async def _learn(self, names: set[str]) -> None:
        """What was reported is committed already, so a failure here is no reason to have it sent again: the sweep tries again."""
        try:
            await self._learner.learn(names)
        except PeakgateError as error:
            self._log.warning("learning put off", cause=error.message, predictions=sorted(names))

    def _count(self, refused: list[pb.RefusedPeak], node: pb.NodeInfo) -> None:
        for row in refused:
            self._metrics.series("peakgate_peaks_refused_total", reason=row.reason).add()
        if refused:
            self._log.warning("peaks refused", node=node.node, rows=len(refused), first=f"{refused[0].reason}: {refused[0].message}")


def _node_card(row: NodeCardRow) -> pb.NodeCard:
    return pb.NodeCard(
        cluster=row.cluster,
        node=row.node,
        gpu_name=row.gpu_name,
        total_bytes=row.total_bytes,
        cards=row.cards,
        seen_time=to_timestamp(row.seen_us),
    )


def sort_out(request: pb.ReportPeaksRequest, *, received_us: int) -> tuple[list[PeakRow], list[PhasePeakRow], list[pb.RefusedPeak]]:
    """The rows to store with their phases, and the refused ones with their places."""
    rows: list[PeakRow] = []
    phases: list[PhasePeakRow] = []
    refused: list[pb.RefusedPeak] = []
    for index, sample in enumerate(request.peaks):
        result = accept(sample, request.node, received_us=received_us)
        if isinstance(result, Refusal):
            refused.append(pb.RefusedPeak(index=index, reason=result.reason, message=result.message))
        else:
            rows.append(result)
            phases += phases_of(sample, result)
    return rows, phases, refused


def _check_batch(request: pb.ReportPeaksRequest) -> None:
    if len(request.peaks) > LARGEST_BATCH_ROWS:
        raise PeakgateError(
            "BATCH_TOO_LARGE",
            f"peaks: {len(request.peaks)} rows; at most {LARGEST_BATCH_ROWS} go into a batch",
            hint=f"send batches of at most {LARGEST_BATCH_ROWS} rows",
        )
    if not request.node.node:
        raise field_error("node.node", "is missing: state the host name of the reporting node")
    for name in ("cluster", "node", "boot_id", "agent_version", "driver_version"):
        text: str = getattr(request.node, name)
        if len(text) > LONGEST_TEXT or "\x00" in text:
            raise field_error(f"node.{name}", f"is longer than {LONGEST_TEXT} characters or holds a zero byte")


def read_event(request: pb.ReportJobEventRequest, *, received_us: int) -> EventRow:
    """The event to store; a time that is not stated, or lies ahead, is the moment of receipt. Raises FIELD_INVALID."""
    if request.event not in EVENTS:
        raise field_error("event", f"is {request.event[:64]!r}; allowed are {', '.join(EVENTS)}")
    if not request.job and not request.prediction:
        raise field_error("job", "is missing: state the job, the prediction or both")
    for name in ("cluster", "job", "prediction"):
        text: str = getattr(request, name)
        if len(text) > LONGEST_TEXT or "\x00" in text:
            raise field_error(name, f"is longer than {LONGEST_TEXT} characters or holds a zero byte")
    if len(request.origin) > LONGEST_ORIGIN or "\x00" in request.origin:
        raise field_error("origin", f"is longer than {LONGEST_ORIGIN} characters or holds a zero byte")
    if request.restart < 0:
        raise field_error("restart", f"is {request.restart}; it must not be negative")
    if not 0 <= request.event_time.seconds <= LATEST_SECONDS:
        raise field_error("event_time", "lies outside 1970 to 9999")
    return EventRow(
        cluster=request.cluster,
        job=request.job,
        restart=request.restart,
        prediction=request.prediction,
        event=request.event,
        event_us=min(from_timestamp(request.event_time), received_us) if request.HasField("event_time") else received_us,
        exit_code=request.exit_code if request.HasField("exit_code") else None,
        signal=request.signal if request.HasField("signal") else None,
        origin=request.origin,
    )
