"""HTTP: /metrics, /healthz, /readyz and POST /v1/predict, one ASGI application."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from peakgate.memory.prediction import FieldError
from peakgate.server.core import LARGEST_MESSAGE_BYTES, Core
from peakgate.server.errors import PeakgateError, field_error, to_json
from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.interceptor import as_peakgate_error
from peakgate.server.logs import Logger
from peakgate.v1.document import DocumentError, answer_to_dict, parse_job
from peakgate.v1.prediction_service_pb2 import PredictRequest
from peakgate.v1.training_job_pb2 import TrainingJob

Endpoint = Callable[[Request], Awaitable[Response]]
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
METHOD = "POST /v1/predict"
FLAGS = {"": False, "false": False, "0": False, "true": True, "1": True}


def build_app(core: Core, metrics: PrometheusMetrics, log: Logger) -> Starlette:
    """The application over a core."""

    async def show_metrics(_request: Request) -> Response:
        return Response(metrics.exposition(), media_type=EXPOSITION)

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if not core.ready:
            return PlainTextResponse("not ready: starting or stopping\n", status_code=503)
        database = "ok" if core.audit.healthy else "away: answers rest on the last calibration that was read"
        return PlainTextResponse(f"ready\ndatabase: {database}\n")

    async def predict(request: Request) -> Response:
        try:
            answer = await core.predictor.predict(await _read_request(request))
        except Exception as error:  # noqa: BLE001 - the outermost frame of a call
            known = as_peakgate_error(error, METHOD, log)
            metrics.series("peakgate_rpcs_total", method=METHOD, code=known.code.name).add()
            metrics.series("peakgate_requests_refused_total", reason=known.reason).add()
            return JSONResponse(to_json(known), status_code=known.http_status)
        metrics.series("peakgate_rpcs_total", method=METHOD, code="OK").add()
        return JSONResponse(answer_to_dict(answer))

    return Starlette(
        routes=[
            Route("/metrics", show_metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/v1/predict", predict, methods=["POST"]),
        ]
    )


async def _read_request(request: Request) -> PredictRequest:
    """The job document in the body; `request_id`, `validate_only` and `brief` in the query."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise PeakgateError(
            "CONTENT_TYPE_UNSUPPORTED", f"the body is {media_type or 'of no type'}; send application/json", hint="set Content-Type"
        )
    query = request.query_params
    return PredictRequest(
        job=_parse(await _read_body(request)),
        request_id=query.get("request_id", ""),
        validate_only=_flag("validate_only", query.get("validate_only", "")),
        brief=_flag("brief", query.get("brief", "")),
    )


async def _read_body(request: Request) -> bytes:
    """The body, read no further than the limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_MESSAGE_BYTES:
            raise PeakgateError("BODY_TOO_LARGE", f"the body is larger than {LARGEST_MESSAGE_BYTES} bytes", hint="send a smaller document")
    return bytes(body)


def _parse(body: bytes) -> TrainingJob:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PeakgateError("BODY_NOT_JSON", f"the body is not JSON: {error}", hint="send one job document as JSON") from error
    if not isinstance(document, dict):
        raise PeakgateError("BODY_NOT_JSON", "the body is no JSON object: send one job document", hint="send one job document as JSON")
    try:
        return parse_job(document)
    except DocumentError as error:
        fields = tuple(FieldError(field=path, description=description) for path, description in error.fields)
        raise PeakgateError("FIELD_INVALID", "; ".join(f"{each.field}: {each.description}" for each in fields), fields=fields) from error


def _flag(name: str, text: str) -> bool:
    if text.lower() not in FLAGS:
        raise field_error(name, f"is {text[:64]!r}; state true or false")
    return FLAGS[text.lower()]
