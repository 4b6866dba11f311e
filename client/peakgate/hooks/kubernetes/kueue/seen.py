"""What the watches have told: the checks of this controller, and the workloads with quota that wait for a check, since when."""

from __future__ import annotations

import time
from collections.abc import Collection
from threading import Lock

from peakgate.hooks.kubernetes.kueue.checks import PENDING, Check, waits_for
from peakgate.hooks.kubernetes.objects import Object, at, list_at


class Seen:
    """Safe between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._checks: dict[str, Check] = {}
        self._waiting: dict[str, tuple[float, Object]] = {}

    def keep(self, *, checks: Collection[str] | None = None, workloads: Collection[str] | None = None) -> None:
        """Forgets what is not among these names or keys."""
        with self._lock:
            if checks is not None:
                self._checks = {name: check for name, check in self._checks.items() if name in checks}
            if workloads is not None:
                self._waiting = {key: told for key, told in self._waiting.items() if key in workloads}

    def put_check(self, name: str, check: Check | None) -> bool:
        """None: it is gone, or another controller's. Whether it was another one before."""
        with self._lock:
            before = self._checks.pop(name, None)
            if check is not None:
                self._checks[name] = check
            return check != before

    def put_workload(self, workload: Object, *, is_deleted: bool) -> bool:
        """Whether it waits for a check of this controller."""
        key = key_of(workload)
        has_pending = any(at(each, "state") == PENDING for each in list_at(workload, "status", "admissionChecks"))
        with self._lock:
            if is_deleted or not has_pending or not at(workload, "status", "admission"):
                self._waiting.pop(key, None)
                return False
            since = self._waiting[key][0] if key in self._waiting else time.monotonic()
            self._waiting[key] = since, workload
            return bool(waits_for(workload, self._checks))

    def waiting(self) -> dict[str, float]:
        """The workloads that wait for a check of this controller, and since when."""
        with self._lock:
            return {key: since for key, (since, workload) in self._waiting.items() if waits_for(workload, self._checks)}

    def checks_of(self, workload: Object) -> list[Check]:
        """Those that it waits for."""
        with self._lock:
            return [self._checks[each] for each in waits_for(workload, self._checks)]


def key_of(item: Object) -> str:
    """Its namespace and name."""
    return f"{at(item, 'metadata', 'namespace')}/{at(item, 'metadata', 'name')}"
