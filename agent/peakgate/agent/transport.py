"""How a batch travels: a call each, or one stream. Both give the answer to the batch, or raise one of two errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import grpc
import grpc.aio
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from peakgate.agent.errors import MessageRefusedError, ServiceUnavailableError
from peakgate.v1 import telemetry_service_pb2 as pb

if TYPE_CHECKING:  # types of the generated stubs, absent at run time
    from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceAsyncStub

    Stream = grpc.aio.StreamStreamCall[pb.StreamPeaksRequest, pb.StreamPeaksResponse]

CALL_TIMEOUT_SECONDS = 10.0
"""A batch is committed in milliseconds; a service that takes longer is sent the same again later."""

REFUSED_CODES = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE})
"""The same message would be refused again."""
REFUSED_EVENT_CODES = REFUSED_CODES | {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ALREADY_EXISTS}

STATUS_DETAILS_KEY = "grpc-status-details-bin"


class Transport(Protocol):
    """Sends one batch and waits for its answer.

    Raises ServiceUnavailableError when it must be sent again, MessageRefusedError when that would not help.
    """

    async def send(self, batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        """The answer to this batch."""
        ...

    async def close(self) -> None:
        """Ends what is open."""
        ...


class UnaryTransport:
    """ReportPeaks: a call a batch. Load balancers can spread it, nothing is held open."""

    def __init__(self, *, stub: TelemetryServiceAsyncStub, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        self._stub = stub
        self._timeout_seconds = timeout_seconds

    async def send(self, batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        """One call."""
        try:
            return await self._stub.ReportPeaks(batch, timeout=self._timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise as_agent_error(error, REFUSED_CODES) from error

    async def close(self) -> None:
        """Nothing is open."""


class StreamTransport:
    """StreamPeaks: one stream, opened at the first batch and again after a failure. A batch waits for its own answer."""

    def __init__(self, *, stub: TelemetryServiceAsyncStub, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        self._stub = stub
        self._timeout_seconds = timeout_seconds
        self._stream: Stream | None = None

    async def send(self, batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        """Writes the batch and reads on to its answer; answers to earlier batches that came late are passed over."""
        if self._stream is None:
            self._stream = self._stub.StreamPeaks()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._stream.write(pb.StreamPeaksRequest(batch=batch))
                return await self._answer(self._stream, batch.sequence)
        except grpc.aio.AioRpcError as error:
            self._drop()
            raise as_agent_error(error, REFUSED_CODES) from error
        except asyncio.CancelledError:
            self._drop()  # the answer that was given up would be taken for the next one's
            raise
        except (TimeoutError, asyncio.InvalidStateError, grpc.aio.UsageError) as error:
            self._drop()
            raise ServiceUnavailableError(f"the stream gave no answer: {error!r}") from error

    async def close(self) -> None:
        """Says that no more batches come, and lets go."""
        if self._stream is not None:
            await self._stream.done_writing()
        self._drop()

    async def _answer(self, stream: Stream, sequence: int) -> pb.ReportPeaksResponse:
        while True:
            message = await stream.read()
            if not isinstance(message, pb.StreamPeaksResponse):  # the end of the stream
                self._drop()
                raise ServiceUnavailableError("the service closed the stream")
            if message.ack.sequence == sequence:
                return message.ack

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
        self._stream = None


def as_agent_error(error: grpc.aio.AioRpcError, refused_codes: frozenset[grpc.StatusCode]) -> ServiceUnavailableError | MessageRefusedError:
    """The error as the sender tells them apart, with the wait that the service asked for in google.rpc.RetryInfo."""
    text = f"{error.code().name}: {error.details()}"
    if error.code() in refused_codes:
        return MessageRefusedError(text)
    return ServiceUnavailableError(text, retry_after_seconds=_retry_after_seconds(error))


def _retry_after_seconds(error: grpc.aio.AioRpcError) -> float:
    for key, value in error.trailing_metadata() or ():
        if key != STATUS_DETAILS_KEY:
            continue
        for detail in Status.FromString(value if isinstance(value, bytes) else value.encode()).details:
            info = RetryInfo()
            if detail.Unpack(info):
                return float(info.retry_delay.ToTimedelta().total_seconds())
    return 0.0
