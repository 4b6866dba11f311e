"""What the sender does with answers, refusals and silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from structlog.testing import capture_logs
from tests.unit.agent.builders import GIB, a_key, a_row

from peakgate.agent.errors import MessageRefusedError, ServiceUnavailableError
from peakgate.agent.sender import MAX_BATCH_ROWS, Sender
from peakgate.agent.spool import Spool
from peakgate.agent.wire import NodeIdentity
from peakgate.v1 import telemetry_service_pb2 as pb
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

POISON_PID = 13


class ScriptedTransport:
    """Answers each batch by a function; the twin of a service in memory."""

    def __init__(self, answer: Callable[[pb.ReportPeaksRequest], pb.ReportPeaksResponse]) -> None:
        self._answer = answer
        self.batches: list[pb.ReportPeaksRequest] = []
        self._changed = asyncio.Condition()

    async def send(self, batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        """The scripted answer."""
        self.batches.append(batch)
        async with self._changed:
            self._changed.notify_all()
        return self._answer(batch)

    async def until(self, *, batches: int) -> None:
        """Waits until that many were sent."""
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: len(self.batches) >= batches)

    async def close(self) -> None:
        """Nothing is open."""


def stored(batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
    """A service that takes everything."""
    return pb.ReportPeaksResponse(sequence=batch.sequence, stored=len(batch.peaks))


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """An empty spool."""
    spool = Spool(path=tmp_path / "agent.db")
    yield spool
    spool.close()


@pytest.fixture
async def make(spool: Spool) -> AsyncIterator[Callable[[ScriptedTransport], Sender]]:
    """Makes a sender with the highest jitter; its stub leads nowhere, so a test with events belongs to the integration tests."""
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        stub = TelemetryServiceStub(channel)
        yield lambda transport: Sender(
            spool=spool,
            transport=transport,
            stub=stub,
            node=lambda: NodeIdentity(node="node-1", agent_version="0.1.0", driver_version="580.65.06"),
            interval_seconds=1000.0,
            uniform=lambda _, high: high,
        )


Make = Callable[[ScriptedTransport], Sender]


async def test_a_drain_sends_all_in_batches_and_empties_the_spool(spool: Spool, make: Make) -> None:
    """No batch is larger than the service takes; sequence numbers grow; every row is sent once."""
    spool.put(rows=[a_row(a_key(pid=pid)) for pid in range(1, 601)])
    transport = ScriptedTransport(stored)
    sender = make(transport)
    await sender.drain()
    assert [len(batch.peaks) for batch in transport.batches] == [MAX_BATCH_ROWS, MAX_BATCH_ROWS, 88]
    assert [batch.sequence for batch in transport.batches] == [1, 2, 3]
    assert {peak.pid for batch in transport.batches for peak in batch.peaks} == set(range(1, 601))
    assert (spool.waiting(), sender.delivery.stored) == (0, 600)
    assert transport.batches[0].node.driver_version == "580.65.06"


async def test_a_refused_row_is_dropped_counted_and_logged(spool: Spool, make: Make) -> None:
    """A row that the service will never take does not come again, and its reason is kept."""
    spool.put(rows=[a_row(a_key(pid=1)), a_row(a_key(pid=2), peak_bytes=900 * GIB)])
    refused = pb.RefusedPeak(index=1, reason="PEAK_ABOVE_CARD", message="peak above the card's total")
    transport = ScriptedTransport(lambda batch: pb.ReportPeaksResponse(sequence=batch.sequence, stored=1, refused=[refused]))
    sender = make(transport)
    with capture_logs() as logs:
        await sender.drain()
    assert (spool.waiting(), sender.delivery.stored, dict(sender.delivery.refused)) == (0, 1, {"PEAK_ABOVE_CARD": 1})
    assert [(entry["reason"], entry["pid"]) for entry in logs] == [("PEAK_ABOVE_CARD", 2)]


def poisoned(batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
    """A service that refuses a whole batch because of one row."""
    if any(peak.pid == POISON_PID for peak in batch.peaks):
        raise MessageRefusedError("INVALID_ARGUMENT: pid 13")
    return stored(batch)


async def test_one_bad_row_does_not_take_its_batch_with_it(spool: Spool, make: Make) -> None:
    """A batch that is refused as a whole is halved until the culprit is alone; all others arrive."""
    spool.put(rows=[a_row(a_key(pid=pid)) for pid in range(1, 101)])
    sender = make(ScriptedTransport(poisoned))
    await sender.drain()
    assert (spool.waiting(), sender.delivery.stored, dict(sender.delivery.refused)) == (0, 99, {"MESSAGE_REFUSED": 1})


def unavailable(times: int, retry_after_seconds: float = 0.0) -> Callable[[pb.ReportPeaksRequest], pb.ReportPeaksResponse]:
    """A service that is away for the first calls."""
    left = iter(range(times))

    def answer(batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        if next(left, None) is not None:
            raise ServiceUnavailableError("UNAVAILABLE: away", retry_after_seconds=retry_after_seconds)
        return stored(batch)

    return answer


async def waits(sender: Sender) -> list[float]:
    """How long the sender waits between its attempts, without waiting."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await sender.drain_patiently(sleep=sleep, given_up=lambda: False)
    return slept


async def test_the_ceiling_of_the_back_off_doubles_up_to_five_minutes(spool: Spool, make: Make) -> None:
    """The rows stay in the spool meanwhile, and go when the service is back."""
    spool.put(rows=[a_row()])
    sender = make(ScriptedTransport(unavailable(11)))
    assert await waits(sender) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert (spool.waiting(), sender.delivery.failures) == (0, 11)


async def test_the_service_may_ask_for_a_longer_wait(spool: Spool, make: Make) -> None:
    """RetryInfo of a failure is a lower bound of the wait."""
    spool.put(rows=[a_row()])
    assert await waits(make(ScriptedTransport(unavailable(3, retry_after_seconds=3.0)))) == [3, 3, 4]


async def test_giving_up_keeps_the_rows(spool: Spool, make: Make) -> None:
    """An agent that must end while the service is away leaves its rows for the next start."""
    spool.put(rows=[a_row()])
    sender = make(ScriptedTransport(unavailable(99)))
    await sender.drain_patiently(sleep=asyncio.sleep, given_up=lambda: True)
    assert spool.waiting() == 1


async def test_what_is_urgent_is_sent_at_once(spool: Spool, make: Make) -> None:
    """The end of a job does not wait for the interval (here: 1000 s)."""
    transport = ScriptedTransport(stored)
    wake, stop = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(make(transport).run(wake=wake, stop=stop))
    await asyncio.sleep(0.05)
    spool.put(rows=[a_row(ended=True)])
    wake.set()
    await transport.until(batches=1)
    stop.set()
    wake.set()
    await running
    assert [peak.ended for batch in transport.batches for peak in batch.peaks] == [True]
    assert spool.waiting() == 0


async def test_the_pause_that_an_answer_asks_for_is_kept(spool: Spool, make: Make) -> None:
    """retry_after of an answer holds back even what is urgent."""
    transport = ScriptedTransport(lambda batch: pb.ReportPeaksResponse(sequence=batch.sequence, retry_after=Duration(seconds=500)))
    wake, stop = asyncio.Event(), asyncio.Event()
    spool.put(rows=[a_row()])
    running = asyncio.create_task(make(transport).run(wake=wake, stop=stop))
    await transport.until(batches=1)
    await asyncio.sleep(0.05)  # the answer reaches the sender
    assert spool.waiting() == 0
    spool.put(rows=[a_row(ended=True)])
    wake.set()
    await asyncio.sleep(0.2)
    assert len(transport.batches) == 1
    stop.set()
    await running
