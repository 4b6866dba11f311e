"""The agent's metrics over HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server

from peakgate.agent.errors import UsageError
from peakgate.agent.metrics import AgentCollector


@contextlib.contextmanager
def serving_metrics(port: int | None, collector: AgentCollector) -> Iterator[None]:
    """Served while the block runs; None: not at all. Raises UsageError for a port that cannot be had."""
    if port is None:
        yield
        return
    registry = CollectorRegistry()
    registry.register(collector)
    try:
        server, thread = start_http_server(port, registry=registry)
    except OSError as error:
        raise UsageError(f"no metrics on port {port}: {error}", remedy="Give another --metrics-port") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
