"""The HTTP of api_server.py's API server: objects, lists in pages, watches that go on, merge patches and replacements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

from tests.integration.kubernetes.api_server import ApiServer, Json

_PATH = re.compile(r"(api/v1|apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(/status)?$")


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store: ApiServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = store


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    timeout = 10

    @property
    def _store(self) -> ApiServer:
        return self.server.store

    def do_GET(self) -> None:
        path, query = self._asked("GET")
        if path == "apis":
            kueue = {"name": "kueue.x-k8s.io", "versions": [{"groupVersion": "kueue.x-k8s.io/v1beta2", "version": "v1beta2"}]}
            self._answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [kueue]})
            return
        match = _PATH.match(path)
        if match is None or self._store.is_down:
            self._answer(503 if self._store.is_down else 404, {"kind": "Status"})
            return
        group, namespace, plural, name, _ = match.groups()
        if name:
            item = self._store.objects.get((group, plural, namespace or "", name))
            self._answer(200 if item else 404, item or {"kind": "Status"})
        elif "watch" in query:
            self._watch(f"{group}/{plural}", int(query["resourceVersion"][0]))
        else:
            self._list(group, plural, query)

    def do_PATCH(self) -> None:
        path, _ = self._asked("PATCH")
        match = _PATH.match(path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if match is None or self.headers["Content-Type"] != "application/merge-patch+json":
            self._answer(415, {"kind": "Status"})
            return
        group, namespace, plural, name, status = match.groups()
        assert status
        self._answer(*self._store.patched((group, plural, namespace or "", name), body))

    def do_PUT(self) -> None:
        path, _ = self._asked("PUT")
        match = _PATH.match(path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert match is not None
        group, namespace, plural, name, _ = match.groups()
        with self._store.changed:
            item = self._store.objects.get((group, plural, namespace or "", name))
            if self._store.is_down or item is None:
                self._answer(503 if self._store.is_down else 404, {"kind": "Status"})
            elif item["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
                self._answer(409, {"kind": "Status"})
            else:
                self._answer(200, self._store.put(group, plural, body))

    def _asked(self, verb: str) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        self._store.calls.append((verb, parts.path))
        return parts.path.strip("/"), parse_qs(parts.query)

    def _list(self, group: str, plural: str, query: dict[str, list[str]]) -> None:
        items = [item for key, item in sorted(self._store.objects.items()) if key[:2] == (group, plural)]
        start = int(query.get("continue", ["0"])[0])
        part = items[start : start + self._store.page]
        following = str(start + self._store.page) if start + self._store.page < len(items) else ""
        self._answer(200, {"items": part, "metadata": {"resourceVersion": str(self._store.version), "continue": following}})

    def _watch(self, kind: str, version: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not self._store.is_down:
            with self._store.changed:
                if not self._after(kind, version) and version >= self._store.oldest:
                    self._store.changed.wait(self._store.bookmark_seconds)
                fresh, now, is_gone = self._after(kind, version), self._store.version, version < self._store.oldest
            if is_gone:
                body = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                self._chunk({"type": "ERROR", "object": body})
                break
            for _, _, event, item in fresh:
                self._chunk({"type": event, "object": item})
            if not fresh and now > version:
                self._chunk({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(now)}}})
            version = now
        self.wfile.write(b"0\r\n\r\n")

    def _after(self, kind: str, version: int) -> list[tuple[int, str, str, Json]]:
        return [each for each in self._store.events if each[0] > version and each[1] == kind]

    def _chunk(self, event: Json) -> None:
        body = json.dumps(event).encode() + b"\n"
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
        self.wfile.flush()

    def _answer(self, status: int, body: Json) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def handle(self) -> None:
        with suppress(OSError):  # a watch that its client has ended
            super().handle()

    def log_message(self, *args: object) -> None:
        """Nothing."""


@contextmanager
def serving(server: ApiServer) -> Iterator[str]:
    """Serves it on loopback; the address."""
    http = _Http(server)
    thread = Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        server.is_down = True
        with server.changed:
            server.changed.notify_all()
        http.shutdown()
        http.server_close()
        thread.join()
