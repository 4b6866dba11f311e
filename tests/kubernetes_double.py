"""A small API server over HTTP: objects by path, conflicts by resourceVersion, JSON patches of `add`, and what was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes import client


@dataclass
class ApiDouble:
    """`objects`: by path; `forbidden`: paths that answer 403; `asked`: (method, path) of each call."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    def calls(self) -> Any:
        """The official client of it."""
        return client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{self.port}"))

    def answer(self, method: str, path: str, body: Any) -> tuple[int, object]:
        """Status and object."""
        self.asked.append((method, path))
        if path in self.forbidden:
            return 403, {"reason": "Forbidden"}
        found = self.objects.get(path)
        if found is None:
            return 404, {"reason": "NotFound"}
        if method == "PUT":
            if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                return 409, {"reason": "Conflict"}
            self.objects[path] = found = body
            found["metadata"]["resourceVersion"] += "1"
        if method == "PATCH":
            for each in body:
                _add(found, each)
        return 200, found


def _add(tree: Any, operation: dict[str, Any]) -> None:
    *path, last = operation["path"].split("/")[1:]
    for part in path:
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    tree[last] = operation["value"]


@contextlib.contextmanager
def api_double() -> Iterator[ApiDouble]:
    """Serves until the block ends."""
    double = ApiDouble()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, found = double.answer(self.command, self.path, body)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_PATCH = _any  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    double.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
