"""An API server as far as a controller sees it: lists in pages, watches with bookmarks, merge patches of a status, conflicts, 410.

Semantics: Kubernetes API concepts (resource versions, watches, "Gone"), and apimachinery for merge patches. Kueue's part is played too
(pkg/workload/evict/evict.go): a Retry evicts a workload and sets its checks Pending again with a count, all Ready admits it.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
KUEUE = "apis/kueue.x-k8s.io/v1beta2"
LEASES = "apis/coordination.k8s.io/v1"
_PATH = re.compile(r"(api/v1|apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(/status)?$")


class ApiServer:
    """The store. `fail` holds statuses with which the next patches are answered; `forget()` makes old versions Gone."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str, str], Json] = {}
        self.events: list[tuple[int, str, str, Json]] = []
        self.calls: list[tuple[str, str]] = []
        self.fail: list[int] = []
        self.oldest = 0
        self.version = 100
        self.page = 2
        self.bookmark_seconds = 0.1
        self.plays_kueue = True
        self.counts_retries = True
        self.is_down = False
        self.changed = Condition()

    def put(self, group: str, plural: str, item: Json, kind: str = "") -> Json:
        """Stores an object as a new version."""
        with self.changed:
            self.version += 1
            item = copy.deepcopy(item)
            item["metadata"]["resourceVersion"] = str(self.version)
            key = (group, plural, item["metadata"].get("namespace", ""), item["metadata"]["name"])
            kind = kind or ("MODIFIED" if key in self.objects else "ADDED")
            self.objects[key] = item
            self.events.append((self.version, f"{group}/{plural}", kind, item))
            self.changed.notify_all()
            return item

    def delete(self, group: str, plural: str, name: str, namespace: str = "") -> None:
        """Removes an object."""
        with self.changed:
            item = self.objects.pop((group, plural, namespace, name))
            self.version += 1
            item = copy.deepcopy(item)
            item["metadata"]["resourceVersion"] = str(self.version)
            self.events.append((self.version, f"{group}/{plural}", "DELETED", item))
            self.changed.notify_all()

    def forget(self) -> None:
        """As after a compaction: whoever watches from before must list again."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self.events = []
            self.changed.notify_all()

    def get(self, group: str, plural: str, name: str, namespace: str = "") -> Json:
        """An object."""
        return self.objects[(group, plural, namespace, name)]

    def state(self, workload: str, check: str = "peakgate", namespace: str = "team-a") -> Json:
        """The state of a check on a workload."""
        status = self.get(KUEUE, "workloads", workload, namespace)["status"]
        return next(each for each in status["admissionChecks"] if each["name"] == check)

    def wait(self, told: Any, seconds: float = 30.0) -> None:
        """Until something holds; fails when it does not in time."""
        until = time.monotonic() + seconds
        while not told():
            assert time.monotonic() < until, "it did not happen in time"
            time.sleep(0.02)

    def patched(self, key: tuple[str, str, str, str], patch: Json) -> tuple[int, Json]:
        """A merge patch of the status (RFC 7386)."""
        with self.changed:
            if self.fail:
                return self.fail.pop(0), {"kind": "Status"}
            item = copy.deepcopy(self.objects.get(key))
            if item is None:
                return 404, {"kind": "Status"}
            wanted = patch.get("metadata", {}).get("resourceVersion")
            if wanted is not None and wanted != item["metadata"]["resourceVersion"]:
                return 409, {"kind": "Status"}
            item["status"] = _merged(item.get("status", {}), patch.get("status", {}))
            for each in item["status"].get("admissionChecks", []):
                if each["state"] not in ("Pending", "Ready", "Retry", "Rejected"):
                    return 422, {"kind": "Status"}
            stored = self.put(key[0], key[1], item)
            if self.plays_kueue and key[1] == "workloads":
                self._kueue(key, copy.deepcopy(stored))
            return 200, stored

    def _kueue(self, key: tuple[str, str, str, str], item: Json) -> None:
        checks = item["status"]["admissionChecks"]
        if any(each["state"] == "Retry" for each in checks):
            for each in checks:
                count = each.get("retryCount", 0) + 1 if each["state"] == "Retry" and self.counts_retries else None
                each.update(state="Pending", message=f"Reset to Pending after eviction. Previously: {each['state']}")
                each.pop("retryCount", None)
                each.update({"retryCount": count} if count else {})
            self.put(key[0], key[1], item)
        elif all(each["state"] == "Ready" for each in checks):
            item["status"].setdefault("conditions", []).append(
                {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "", "lastTransitionTime": "2026-11-30T00:00:00Z"}
            )
            self.put(key[0], key[1], item)


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            path, query = self._asked("GET")
            if path == "apis":
                kueue = {"name": "kueue.x-k8s.io", "versions": [{"groupVersion": "kueue.x-k8s.io/v1beta2", "version": "v1beta2"}]}
                self._answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [kueue]})
                return
            match = _PATH.match(path)
            if match is None or server.is_down:
                self._answer(503 if server.is_down else 404, {"kind": "Status"})
                return
            group, namespace, plural, name, _ = match.groups()
            if name:
                item = server.objects.get((group, plural, namespace or "", name))
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
            self._answer(*server.patched((group, plural, namespace or "", name), body))

        def do_PUT(self) -> None:
            path, _ = self._asked("PUT")
            match = _PATH.match(path)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert match is not None
            group, namespace, plural, name, _ = match.groups()
            with server.changed:
                item = server.objects.get((group, plural, namespace or "", name))
                if server.is_down or item is None:
                    self._answer(503 if server.is_down else 404, {"kind": "Status"})
                elif item["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
                    self._answer(409, {"kind": "Status"})
                else:
                    self._answer(200, server.put(group, plural, body))

        def _asked(self, verb: str) -> tuple[str, dict[str, list[str]]]:
            parts = urlsplit(self.path)
            server.calls.append((verb, parts.path))
            return parts.path.strip("/"), parse_qs(parts.query)

        def _list(self, group: str, plural: str, query: dict[str, list[str]]) -> None:
            items = [item for key, item in sorted(server.objects.items()) if key[:2] == (group, plural)]
            start = int(query.get("continue", ["0"])[0])
            part = items[start : start + server.page]
            following = str(start + server.page) if start + server.page < len(items) else ""
            self._answer(200, {"items": part, "metadata": {"resourceVersion": str(server.version), "continue": following}})

        def _watch(self, kind: str, version: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while not server.is_down:
                with server.changed:
                    if not self._after(kind, version) and version >= server.oldest:
                        server.changed.wait(server.bookmark_seconds)
                    fresh, now, is_gone = self._after(kind, version), server.version, version < server.oldest
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
            return [each for each in server.events if each[0] > version and each[1] == kind]

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

    return Handler


@contextmanager
def serving(server: ApiServer) -> Iterator[str]:
    """Serves it on loopback; the address."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    http.daemon_threads = True
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
