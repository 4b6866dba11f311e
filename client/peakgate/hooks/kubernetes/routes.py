"""Which path is what: reviews on the webhook's port, probes and metrics on a plain one as well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from peakgate.hooks.kubernetes.admission import ReviewError
from peakgate.hooks.kubernetes.http_connection import JSON, Request, Response
from peakgate.hooks.kubernetes.listener import Handle
from peakgate.hooks.kubernetes.metrics import CONTENT_TYPE, WebhookMetrics

VALIDATE, MUTATE, HEALTH, READY, METRICS = "/validate", "/mutate", "/healthz", "/readyz", "/metrics"
PLAIN = "text/plain; charset=utf-8"
OK, BAD_REQUEST, NOT_FOUND, BAD_METHOD, BAD_TYPE, UNREADY = 200, 400, 404, 405, 415, 503

Review = Callable[[bytes], Awaitable[bytes]]


def reviews(paths: Mapping[str, Review], metrics: WebhookMetrics, probes: Handle) -> Handle:
    """The webhook's port: POST of JSON to its paths; everything else is a probe."""

    async def handle(request: Request) -> Response:
        review = paths.get(request.path)
        if review is None:
            return await probes(request)
        if request.method != "POST":
            return _refused(metrics, "not_post", BAD_METHOD, "a review is sent by POST")
        if request.content_type != JSON:
            return _refused(metrics, "content_type", BAD_TYPE, f"a review is {JSON}")
        try:
            return Response(body=await review(request.body))
        except ReviewError as error:
            return _refused(metrics, "not_a_review", BAD_REQUEST, str(error))

    return handle


def probes(metrics: WebhookMetrics, unready: Callable[[], str], *, has_metrics: bool = True) -> Handle:
    """Probes and metrics. `unready`: why no review should come here; empty when all is well."""

    async def handle(request: Request) -> Response:
        if request.path not in (HEALTH, READY, *((METRICS,) if has_metrics else ())):
            return _refused(metrics, "not_found", NOT_FOUND, "there is nothing here")
        if request.method not in ("GET", "HEAD"):
            return _refused(metrics, "not_found", BAD_METHOD, "this is read by GET")
        if request.path == METRICS:
            return Response(body=metrics.text(), content_type=CONTENT_TYPE)
        reason = unready() if request.path == READY else ""
        return Response(status=UNREADY if reason else OK, body=f"{reason or 'ok'}\n".encode(), content_type=PLAIN)

    return handle


def _refused(metrics: WebhookMetrics, reason: str, status: int, words: str) -> Response:
    metrics.refused.labels(reason).inc()
    return Response(status=status, body=f"{words}\n".encode(), content_type=PLAIN)
