"""An API server as far as a controller sees it: lists in pages, watches with bookmarks, merge patches of a status, conflicts, 410.

Semantics: Kubernetes API concepts (resource versions, watches, "Gone"), and apimachinery for merge patches. Kueue's part is played too
(pkg/workload/evict/evict.go): a Retry evicts a workload and sets its checks Pending again with a count, all Ready admits it.
"""

from __future__ import annotations

import copy
import time
from threading import Condition
from typing import Any

Json = dict[str, Any]
KUEUE = "apis/kueue.x-k8s.io/v1beta2"
LEASES = "apis/coordination.k8s.io/v1"


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
