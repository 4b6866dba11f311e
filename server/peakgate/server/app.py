"""`peakgate serve`: migrations, the core, gRPC, HTTP, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass

import grpc
import uvicorn
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from peakgate.server.core import Core
from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.logs import Logger
from peakgate.server.memory import MemoryModel, memory_model
from peakgate.server.requests import SeenRequests
from peakgate.server.settings import Settings
from peakgate.server.site_models import load_site_models
from peakgate.server.store.lock import only_server
from peakgate.server.store.sql import open_store
from peakgate.server.web import build_app

SERVICES = (
    "peakgate.v1.PredictionService",
    "peakgate.v1.TelemetryService",
    "peakgate.v1.CalibrationService",
    "peakgate.v1.CatalogService",
)

SERVER_OPTIONS = (
    # An agent's keepalive every 30 s must not count as abuse (gRFC A8: the default refuses pings closer than 5 minutes).
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 15_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Streams come back to another replica after a while (gRFC A9); agents resume from the last acknowledgement.
    ("grpc.max_connection_age_ms", 600_000),
    ("grpc.max_connection_age_grace_ms", 30_000),
    ("grpc.max_concurrent_streams", 1000),
)

SWITCH_SECONDS = 0.001
"""After which a thread that writes or learns lets the event loop go on. With Python's 5 ms, Predict's 99th percentile beside 333 batches
of peaks a second was three times as long (tests/bench/bounds.yaml)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the service listens; ports that were 0 are the ones that were taken."""

    grpc: str
    http: str


async def serve(
    settings: Settings, log: Logger, *, memory: MemoryModel | None = None, on_ready: Callable[[Addresses], None] = lambda _: None
) -> None:
    """Runs until SIGTERM or SIGINT. Raises PeakgateError when the database cannot be used, OSError when a port is taken."""
    with only_server(settings.database_url):
        await _serve(settings, log, memory if memory is not None else memory_model(load_site_models(settings.models)), on_ready)


async def _serve(settings: Settings, log: Logger, memory: MemoryModel, on_ready: Callable[[Addresses], None]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    metrics = PrometheusMetrics()
    core = await _make_core(settings, metrics, log, memory)
    health_servicer = health.aio.HealthServicer()
    server, grpc_port = await _make_grpc(core, settings, health_servicer)
    web, http_port = _make_web(core, settings, metrics, log)
    web_task = asyncio.create_task(web[0].serve(sockets=[web[1]]), name="http")
    await core.start()
    _prefer_calls()
    await server.start()
    for name in ("", *SERVICES):
        await health_servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    addresses = Addresses(grpc=f"{settings.host}:{grpc_port}", http=f"{settings.host}:{http_port}")
    log.info("serving", grpc=addresses.grpc, http=addresses.http, calibration=core.judge.snapshot.version)
    on_ready(addresses)
    await stopping.wait()
    log.info("stopping")
    core.ready = False
    await health_servicer.enter_graceful_shutdown()
    await server.stop(settings.stop_grace_seconds)
    web[0].should_exit = True
    await web_task
    await core.stop(settings.stop_grace_seconds)
    log.info("stopped")


def _prefer_calls() -> None:
    """What was loaded stays for good: a full collection that went through its 100,000 objects would hold up every call for some 50 ms."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()


async def _make_core(settings: Settings, metrics: PrometheusMetrics, log: Logger, memory: MemoryModel) -> Core:
    store = await asyncio.to_thread(open_store, settings.database_url)
    known = () if store.shared else await asyncio.to_thread(store.request_ids)
    return Core(
        memory,
        store,
        policy=settings.policy(),
        metrics=metrics,
        log=log,
        cache_entries=settings.cache_entries,
        audit_queue_rows=settings.audit_queue_rows,
        retention_hours=settings.retention_hours,
        learning=settings.learning(),
        retention=settings.retention(),
        seen=SeenRequests(known),
    )


async def _make_grpc(core: Core, settings: Settings, health_servicer: health.aio.HealthServicer) -> tuple[grpc.aio.Server, int]:
    server = core.build_server(options=SERVER_OPTIONS)
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    await health_servicer.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    try:
        return server, server.add_insecure_port(f"{settings.host}:{settings.grpc_port}")
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen on {settings.host}:{settings.grpc_port}; is another service running there?") from error


class _Web(uvicorn.Server):
    """uvicorn without signal handlers of its own: the service ends it in its turn."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leaves signals alone."""
        yield


def _make_web(core: Core, settings: Settings, metrics: PrometheusMetrics, log: Logger) -> tuple[tuple[_Web, socket.socket], int]:
    listening = socket.create_server((settings.host, settings.http_port))
    config = uvicorn.Config(build_app(core, metrics, log), log_config=None, access_log=False, lifespan="off", server_header=False)
    return (_Web(config), listening), listening.getsockname()[1]
