"""The controller's own page: metrics, whether it is alive, whether it can reach the API server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

TIMEOUT_SECONDS = 5.0


@contextlib.contextmanager
def served(
    listen: tuple[str, int], registry: CollectorRegistry, *, is_alive: Callable[[], bool], is_ready: Callable[[], bool]
) -> Iterator[int]:
    """Serves /metrics, /healthz and /readyz while the block runs; the port. Raises OSError for one that cannot be had."""

    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT_SECONDS
        wbufsize = -1

        def do_GET(self) -> None:
            checks = {"/healthz": is_alive, "/readyz": is_ready}
            if self.path == "/metrics":
                self._answer(200, generate_latest(registry), CONTENT_TYPE_LATEST)
            elif self.path in checks:
                good = checks[self.path]()
                self._answer(200 if good else 503, b"ok\n" if good else b"not now\n", "text/plain")
            else:
                self._answer(404, b"not found\n", "text/plain")

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Nothing: probes come every few seconds."""

    server = ThreadingHTTPServer(listen, Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
