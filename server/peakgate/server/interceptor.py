"""The one interceptor: counts every call and turns every exception into a status. No exception's text leaks."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NoReturn, TypeAlias, TypeVar, cast

import grpc

from peakgate.memory.prediction import JobError
from peakgate.server.errors import PeakgateError, from_job_error, internal_error, to_status
from peakgate.server.logs import Logger
from peakgate.server.metrics import Instrument, Metrics

Context = grpc.aio.ServicerContext[object, object]
Request = TypeVar("Request")
Response = TypeVar("Response")
Unary = Callable[[object, Context], Awaitable[object]]
Stream = Callable[[object, Context], AsyncIterator[object]]
Handler: TypeAlias = "grpc.RpcMethodHandler[object, object]"  # generic only for type checkers
OURS = "/peakgate.v1."


class Guard(grpc.aio.ServerInterceptor):
    """Wraps each method once; a call then costs one more await and two time series that were looked up before."""

    def __init__(self, metrics: Metrics, log: Logger) -> None:
        self._metrics = metrics
        self._log = log
        self._wrapped: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Request, Response] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Request, Response] | None:
        """The handler of a method, guarded. Health and reflection, and methods that do not exist, stay as they are."""
        method = handler_call_details.method
        known = self._wrapped.get(method)
        if known is None:
            handler = await continuation(handler_call_details)
            if handler is None or not method.startswith(OURS):
                return handler
            known = self._wrapped[method] = self._wrap(method, cast("Handler", handler))
        return cast("grpc.RpcMethodHandler[Request, Response]", known)

    def _wrap(self, method: str, handler: Handler) -> Handler:
        name = method.removeprefix(OURS)
        if handler.unary_unary is not None:
            behaviour = self._unary(name, cast("Unary", handler.unary_unary))
            return grpc.unary_unary_rpc_method_handler(
                behaviour,
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        if handler.stream_unary is not None:
            return grpc.stream_unary_rpc_method_handler(
                self._unary(name, cast("Unary", handler.stream_unary)),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        stream = self._stream(name, cast("Stream", handler.stream_stream))
        return grpc.stream_stream_rpc_method_handler(
            stream,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _unary(self, name: str, behaviour: Unary) -> Unary:
        seconds = self._metrics.series("peakgate_rpc_seconds", method=name)
        served = self._metrics.series("peakgate_rpcs_total", method=name, code="OK")

        async def guarded(request: object, context: Context) -> object:
            start = time.perf_counter()
            try:
                response = await behaviour(request, context)
            except Exception as error:  # noqa: BLE001 - the outermost frame of a call
                await self._abort(name, error, context)
            _finish(served, seconds, start)
            return response

        return guarded

    def _stream(self, name: str, behaviour: Stream) -> Stream:
        served = self._metrics.series("peakgate_rpcs_total", method=name, code="OK")

        async def guarded(request: object, context: Context) -> AsyncIterator[object]:
            try:
                async for response in behaviour(request, context):
                    yield response
            except Exception as error:  # noqa: BLE001 - the outermost frame of a call
                await self._abort(name, error, context)
            served.add()

        return guarded

    async def _abort(self, name: str, error: Exception, context: Context) -> NoReturn:
        from grpc_status import rpc_status

        if isinstance(error, grpc.aio.AbortError):
            raise error
        known = as_peakgate_error(error, name, self._log)
        self._metrics.series("peakgate_rpcs_total", method=name, code=known.code.name).add()
        self._metrics.series("peakgate_requests_refused_total", reason=known.reason).add()
        await context.abort_with_status(rpc_status.to_status(to_status(known)))
        raise AssertionError("abort_with_status returns never")


def as_peakgate_error(error: Exception, name: str, log: Logger) -> PeakgateError:
    """The error to answer with; the cause of an unexpected one goes to the log under an incident id. Called while handling it."""
    if isinstance(error, PeakgateError):
        return error
    if isinstance(error, JobError):
        return from_job_error(error)
    incident = uuid.uuid4().hex
    log.exception("unexpected error", method=name, incident=incident)
    return internal_error(incident)


def _finish(served: Instrument, seconds: Instrument, start: float) -> None:
    served.add()
    seconds.observe(time.perf_counter() - start)
