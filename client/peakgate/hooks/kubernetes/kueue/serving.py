"""The controller's own page: metrics, whether it is alive, whether it can reach the API server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

TIMEOUT_SECONDS = 5.0
PLAIN = "text/plain"

Answer = tuple[int, bytes, str]
"""Status, body and its type."""


@contextlib.contextmanager
def served(
    listen: tuple[str, int], registry: CollectorRegistry, *, is_alive: Callable[[], bool], is_ready: Callable[[], bool]
) -> Iterator[int]:
    """Serves /metrics, /healthz and /readyz while the block runs; the port. Raises OSError for one that cannot be had."""
    pages = {
        "/metrics": lambda: (200, generate_latest(registry), CONTENT_TYPE_LATEST),
        "/healthz": lambda: _probed(is_alive()),
        "/readyz": lambda: _probed(is_ready()),
    }
    server = _Server(listen, pages)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _probed(is_good: bool) -> Answer:  # noqa: FBT001 - the answer to a question
    return (200, b"ok\n", PLAIN) if is_good else (503, b"not now\n", PLAIN)


def _absent() -> Answer:
    return 404, b"not found\n", PLAIN


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listen: tuple[str, int], pages: Mapping[str, Callable[[], Answer]]) -> None:
        super().__init__(listen, _Handler)
        self.pages = pages


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = TIMEOUT_SECONDS
    wbufsize = -1

    def do_GET(self) -> None:
        status, body, kind = self.server.pages.get(self.path, _absent)()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nothing: probes come every few seconds."""
