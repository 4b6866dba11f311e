"""HTTP: /metrics, /healthz, /readyz and POST /v1/predict, one ASGI application."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from peakgate.memory.prediction import FieldError
from peakgate.server.core import Core
from peakgate.server.errors import PeakgateError, field_error, to_json
from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.interceptor import as_peakgate_error
from peakgate.server.limits import LARGEST_DOCUMENT_BYTES, too_large
from peakgate.server.logs import Logger
from peakgate.server.metric_table import HTTP_PREDICT
from peakgate.server.predictor import Predictor
from peakgate.v1.callers import HTTP
from peakgate.v1.document import DocumentError, answer_to_dict, parse_job
from peakgate.v1.json_text import JsonError, read_json
from peakgate.v1.prediction_service_pb2 import PredictRequest
from peakgate.v1.training_job_pb2 import TrainingJob

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
FLAGS = {"": False, "false": False, "0": False, "true": True, "1": True}


def build_app(core: Core, metrics: PrometheusMetrics, log: Logger) -> Starlette:
    """The application over a core."""

    async def show_metrics(_request: Request) -> Response:
        return Response(await asyncio.to_thread(metrics.exposition), media_type=EXPOSITION)  # two thousand lines: calls go on beside it

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if not core.ready:
            return PlainTextResponse("not ready: starting or stopping\n", status_code=503)
        if not core.audit.writable:
            text = "not ready: the database is away or slow, so predictions wait in memory; answers rest on the last calibration\n"
            return PlainTextResponse(text, status_code=503)
        return PlainTextResponse("ready\ndatabase: ok\n")

    seconds = metrics.series("peakgate_rpc_seconds", method=HTTP_PREDICT)

    async def predict(request: Request) -> Response:
        began = time.perf_counter()
        try:
            answer = await core.predictor.predict(await _read_request(request, core.predictor), caller=HTTP)
        except Exception as error:  # noqa: BLE001 - the outermost frame of a call
            known = as_peakgate_error(error, HTTP_PREDICT, log)
            metrics.series("peakgate_rpcs_total", method=HTTP_PREDICT, code=known.code.name).add()
            metrics.series("peakgate_requests_refused_total", reason=known.reason).add()
            return JSONResponse(to_json(known), status_code=known.http_status)
        metrics.series("peakgate_rpcs_total", method=HTTP_PREDICT, code="OK").add()
        seconds.observe(time.perf_counter() - began)
        return JSONResponse(answer_to_dict(answer))

    return Starlette(
        routes=[
            Route("/metrics", show_metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/v1/predict", predict, methods=["POST"]),
        ]
    )


async def _read_request(request: Request, predictor: Predictor) -> PredictRequest:
    """The job document in the body; `request_id`, `validate_only`, `brief`, `user` and `try_reason` in the query."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise PeakgateError(
            "CONTENT_TYPE_UNSUPPORTED", f"the body is {media_type or 'of no type'}; send application/json", hint="set Content-Type"
        )
    query = request.query_params
    return PredictRequest(
        job=await _parse(await _read_body(request), predictor),
        request_id=query.get("request_id", ""),
        validate_only=_flag("validate_only", query.get("validate_only", "")),
        brief=_flag("brief", query.get("brief", "")),
        user=query.get("user", ""),
        try_reason=query.get("try_reason", ""),
    )


async def _read_body(request: Request) -> bytes:
    """The body, read no further than the limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_DOCUMENT_BYTES:
            raise too_large("the body", int(request.headers.get("content-length", len(body))), LARGEST_DOCUMENT_BYTES)
    return bytes(body)


async def _parse(body: bytes, predictor: Predictor) -> TrainingJob:
    try:
        document = read_json(body.decode())
    except UnicodeDecodeError as error:
        raise _not_json(f"is no text in UTF-8 (byte {error.start})") from error
    except JsonError as error:
        raise _not_json(error.message, error.fields) from error
    if not isinstance(document, dict):
        raise _not_json("is no JSON object: send one job document")
    try:
        return parse_job(document)
    except DocumentError as error:
        raise await predictor.refused(error.job, _field_errors(error.fields)) from error


def _not_json(problem: str, fields: Sequence[tuple[str, str]] = ()) -> PeakgateError:
    reason = "FIELD_INVALID" if fields else "BODY_NOT_JSON"
    return PeakgateError(reason, f"the body {problem}", fields=_field_errors(fields), hint="send one job document as JSON")


def _field_errors(fields: Sequence[tuple[str, str]]) -> tuple[FieldError, ...]:
    return tuple(FieldError(field=path, description=description) for path, description in fields)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in FLAGS:
        raise field_error(name, f"is {text[:64]!r}; state true or false")
    return FLAGS[text.lower()]
