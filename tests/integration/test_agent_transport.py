"""Both transports over real gRPC: answers, refusals, silence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import grpc
import grpc.aio
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from tests.integration.agent_service import Context, RecordingService, hang, serving, store

from peakgate.agent.errors import MessageRefusedError, ServiceUnavailableError
from peakgate.agent.transport import StreamTransport, Transport, UnaryTransport
from peakgate.v1 import telemetry_service_pb2 as pb
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

Open = Callable[[int], Transport]


@pytest.fixture(params=["unary", "stream"])
async def open_transport(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Opens the transport to a port, with a timeout of a second; closed at the end."""
    channels: list[grpc.aio.Channel] = []
    opened: list[Transport] = []

    def open_to(port: int) -> Transport:
        channels.append(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
        kind = UnaryTransport if request.param == "unary" else StreamTransport
        opened.append(kind(stub=TelemetryServiceStub(channels[-1]), timeout_seconds=1.0))
        return opened[-1]

    yield open_to
    for transport in opened:
        await transport.close()
    for channel in channels:
        await channel.close()


class FailingService(RecordingService):
    """Ends the call with a status."""

    def __init__(self, code: grpc.StatusCode, details: Status | None = None) -> None:
        super().__init__()
        self._code = code
        self._details = details

    async def ReportPeaks(self, request: pb.ReportPeaksRequest, context: Context) -> pb.ReportPeaksResponse:
        """Fails."""
        await self._fail(context)
        return pb.ReportPeaksResponse()

    async def StreamPeaks(
        self,
        request_iterator: AsyncIterator[pb.StreamPeaksRequest],
        context: Context,
    ) -> AsyncIterator[pb.StreamPeaksResponse]:
        """Fails at the first batch."""
        async for _ in request_iterator:
            await self._fail(context)
            yield pb.StreamPeaksResponse()

    async def _fail(self, context: Context) -> None:
        metadata = (("grpc-status-details-bin", self._details.SerializeToString()),) if self._details else ()
        await context.abort(self._code, "as told", trailing_metadata=metadata)


def a_batch(sequence: int = 1) -> pb.ReportPeaksRequest:
    """A batch of one row."""
    return pb.ReportPeaksRequest(sequence=sequence, peaks=[pb.PeakSample(gpu_uuid="GPU-x", peak_bytes=1.0)])


async def test_a_batch_is_answered(open_transport: Open) -> None:
    """Each batch gets its own answer, one after the other."""
    async with serving(RecordingService()) as port:
        transport = open_transport(port)
        assert [(await transport.send(a_batch(number))).sequence for number in (1, 2, 3)] == [1, 2, 3]


async def test_a_refusal_is_not_tried_again(open_transport: Open) -> None:
    """INVALID_ARGUMENT is about the message, not about the moment."""
    async with serving(FailingService(grpc.StatusCode.INVALID_ARGUMENT)) as port:
        with pytest.raises(MessageRefusedError, match="INVALID_ARGUMENT: as told"):
            await open_transport(port).send(a_batch())


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAUTHENTICATED]
)
async def test_any_other_failure_is_tried_again(open_transport: Open, code: grpc.StatusCode) -> None:
    """The row is not at fault, so it stays."""
    async with serving(FailingService(code)) as port:
        with pytest.raises(ServiceUnavailableError, match=code.name):
            await open_transport(port).send(a_batch())


async def test_the_wait_that_a_failure_asks_for_is_read(open_transport: Open) -> None:
    """google.rpc.RetryInfo in the status tells how long to wait."""
    detail = AnyMessage()
    detail.Pack(RetryInfo(retry_delay=Duration(seconds=7)))
    status = Status(code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], message="as told", details=[detail])
    async with serving(FailingService(grpc.StatusCode.RESOURCE_EXHAUSTED, status)) as port:
        with pytest.raises(ServiceUnavailableError) as caught:
            await open_transport(port).send(a_batch())
    assert caught.value.retry_after_seconds == 7


async def test_silence_is_a_failure(open_transport: Open) -> None:
    """A service that never answers costs the timeout and no more; afterwards the transport works again."""
    service = RecordingService(hang)
    async with serving(service) as port:
        transport = open_transport(port)
        with pytest.raises(ServiceUnavailableError):
            await transport.send(a_batch(1))
        service.answer = store
        assert (await transport.send(a_batch(2))).stored == 1


async def test_a_service_that_is_not_there_is_a_failure(open_transport: Open) -> None:
    """Nobody listens: to be tried again."""
    async with serving(RecordingService()) as port:
        pass
    with pytest.raises(ServiceUnavailableError):
        await open_transport(port).send(a_batch())


async def test_an_answer_to_an_earlier_batch_is_passed_over() -> None:
    """On a stream an answer may come late; a batch is only acknowledged by its own."""

    class Stuttering(RecordingService):
        async def StreamPeaks(
            self,
            request_iterator: AsyncIterator[pb.StreamPeaksRequest],
            context: Context,
        ) -> AsyncIterator[pb.StreamPeaksResponse]:
            async for message in request_iterator:
                for sequence in (message.batch.sequence - 1, message.batch.sequence):
                    yield pb.StreamPeaksResponse(ack=pb.ReportPeaksResponse(sequence=sequence, stored=sequence))

    async with serving(Stuttering()) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        transport = StreamTransport(stub=TelemetryServiceStub(channel), timeout_seconds=5.0)
        assert [(await transport.send(a_batch(number))).stored for number in (5, 6)] == [5, 6]
        await transport.close()


async def test_a_stream_that_the_service_ends_is_opened_again() -> None:
    """A service that stops politely closes its streams; the batch is tried again on a new one."""

    class Closing(RecordingService):
        async def StreamPeaks(
            self,
            request_iterator: AsyncIterator[pb.StreamPeaksRequest],
            context: Context,
        ) -> AsyncIterator[pb.StreamPeaksResponse]:
            async for message in request_iterator:
                if not self.streamed:
                    self.streamed.append(message.batch)
                    return
                yield pb.StreamPeaksResponse(ack=await store(message.batch))

    async with serving(Closing()) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        transport = StreamTransport(stub=TelemetryServiceStub(channel), timeout_seconds=5.0)
        with pytest.raises(ServiceUnavailableError):
            await transport.send(a_batch(1))
        assert (await transport.send(a_batch(2))).stored == 1
        await transport.close()
