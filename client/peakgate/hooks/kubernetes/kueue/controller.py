"""The controller while it leads: what it has seen, what waits, and the worker that decides."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from typing import Protocol

import structlog

from peakgate.hooks.kubernetes.api_errors import CONFLICT, NOT_FOUND, ApiError
from peakgate.hooks.kubernetes.kueue.checks import (
    PENDING,
    READY,
    RETRY,
    Check,
    CheckMode,
    Outcome,
    active_patch,
    check_of,
    retries_of,
    state_patch,
    waits_for,
)
from peakgate.hooks.kubernetes.kueue.deciding import FAULT, Judged, decided, settled
from peakgate.hooks.kubernetes.kueue.metrics import KueueMetrics
from peakgate.hooks.kubernetes.kueue.watching import Handlers, Source, Watching
from peakgate.hooks.kubernetes.kueue.work_queue import WorkQueue
from peakgate.hooks.kubernetes.objects import Object, at, list_at

log = structlog.get_logger("peakgate.kueue")
DELETED = "DELETED"
MOST_REMEMBERED = 10_000
JOIN_SECONDS = 5.0


class Kueue(Source, Protocol):
    """The calls that change something."""

    def workload(self, namespace: str, name: str) -> Object:
        """Raises ApiError."""

    def patch_workload(self, namespace: str, name: str, patch: Object) -> None:
        """Raises ApiError."""

    def patch_check(self, name: str, patch: Object) -> None:
        """Raises ApiError."""


class Controller:
    """Watches checks and workloads, and sets states."""

    def __init__(
        self, cluster: Kueue, judge: Callable[[Object], Judged], *, metrics: KueueMetrics, mode: CheckMode = CheckMode.warn
    ) -> None:
        self._cluster = cluster
        self._judge = judge
        self._metrics = metrics
        self._mode = mode
        self._queue = WorkQueue()
        self._stopped = Event()
        self._lock = Lock()
        self._checks: dict[str, Check] = {}
        self._activations: dict[str, Object] = {}
        self._waiting: dict[str, tuple[float, Object]] = {}
        self._retries: OrderedDict[str, int] = OrderedDict()
        failed = self._failed
        self._watches = (
            Watching(cluster, "admissionchecks", Handlers(listed=self._all_checks, changed=self._one_check, failed=failed)),
            Watching(cluster, "workloads", Handlers(listed=self._all_workloads, changed=self._one_workload, failed=failed)),
        )
        self._threads = [Thread(target=each, daemon=True) for each in (*(watch.run for watch in self._watches), self._work)]

    def start(self) -> None:
        """Begins. A controller that was stopped stays so."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends what is under way."""
        self._stopped.set()
        for watch in self._watches:
            watch.stop()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        self._metrics.waiting.set(0)  # another replica counts now
        self._metrics.oldest.set(0)

    @property
    def is_whole(self) -> bool:
        """Whether everything that was started still runs."""
        return all(thread.is_alive() for thread in self._threads)

    def measure(self) -> None:
        """Writes down how much waits."""
        with self._lock:
            since = [seen for seen, workload in self._waiting.values() if waits_for(workload, self._checks)]
        self._metrics.waiting.set(len(since))
        self._metrics.oldest.set(time.monotonic() - min(since) if since else 0.0)

    def _all_checks(self, items: Sequence[Object]) -> None:
        names = {str(at(each, "metadata", "name")) for each in items}
        with self._lock:
            self._checks = {name: check for name, check in self._checks.items() if name in names}
        for each in items:
            self._one_check("", each)

    def _one_check(self, kind: str, item: Object) -> None:
        name, check = str(at(item, "metadata", "name")), check_of(item, self._mode)
        with self._lock:
            before = self._checks.pop(name, None)
            if check is not None and kind != DELETED:
                self._checks[name] = check
        if check is None or kind == DELETED:
            return
        patch = active_patch(item, _now())
        if patch is not None:
            self._activations[name] = patch
            self._queue.add(f"/{name}")
        if check != before:
            self._requeue()

    def _all_workloads(self, items: Sequence[Object]) -> None:
        self._metrics.synced.set_to_current_time()
        keys = {_key(each) for each in items}
        with self._lock:
            self._waiting = {key: told for key, told in self._waiting.items() if key in keys}
        for each in items:
            self._one_workload("", each)

    def _one_workload(self, kind: str, item: Object) -> None:
        self._metrics.synced.set_to_current_time()
        key = _key(item)
        has_pending = any(at(each, "state") == PENDING for each in list_at(item, "status", "admissionChecks"))
        with self._lock:
            if kind == DELETED or not has_pending or not at(item, "status", "admission"):
                self._waiting.pop(key, None)
                return
            since = self._waiting[key][0] if key in self._waiting else time.monotonic()
            self._waiting[key] = since, item
            is_ours = bool(waits_for(item, self._checks))
        if is_ours:
            self._queue.add(key)

    def _requeue(self) -> None:
        with self._lock:
            keys = [key for key, (_, item) in self._waiting.items() if waits_for(item, self._checks)]
        for key in keys:
            self._queue.add(key)

    def _failed(self, error: ApiError) -> None:
        self._metrics.failed(error.status)
        log.warning("the API server refused a call", status=error.status, error=str(error))

    def _work(self) -> None:
        while (key := self._queue.get(self._stopped)) is not None:
            try:
                with self._metrics.seconds.time():
                    self._reconcile(*key.split("/", 1))
                self._queue.forget(key)
            except ApiError as error:
                if error.status == NOT_FOUND:
                    self._queue.forget(key)
                    continue
                self._failed(error)
                self._queue.failed(key)

    def _reconcile(self, namespace: str, name: str) -> None:
        if not namespace:
            self._activate(name)
            return
        workload = self._cluster.workload(namespace, name)
        with self._lock:
            checks = {each: self._checks[each] for each in waits_for(workload, self._checks)}
        if not checks:
            return
        check_name, check = next(iter(checks.items()))
        outcome, podsets = self._outcome(workload, check)
        self._cluster.patch_workload(namespace, name, state_patch(workload, check_name, outcome, _now(), podsets))
        self._note(workload, check, outcome)
        if len(checks) > 1:  # the other one starts from the new version
            self._queue.add(f"{namespace}/{name}")

    def _activate(self, name: str) -> None:
        patch = self._activations.get(name)
        try:
            if patch is not None:
                self._cluster.patch_check(name, patch)
        except ApiError as error:
            if error.status != CONFLICT:  # what changed it comes as an event
                raise
        self._activations.pop(name, None)

    def _outcome(self, workload: Object, check: Check) -> tuple[Outcome, Sequence[str]]:
        outcome = settled(check)
        if outcome is not None:
            return outcome, ()
        try:
            judged = self._judge(workload)
        except Exception:  # a workload that waits for ever is worse than one that goes on unchecked
            log.exception("a workload could not be judged", workload=_key(workload))
            return Outcome(state=READY, reason=FAULT, message="not checked: the controller has a fault, its log says which"), ()
        retries = max(retries_of(workload, check.name), self._retries.get(_uid(workload), 0))
        return decided(check, judged, retries), judged.podsets

    def _note(self, workload: Object, check: Check, outcome: Outcome) -> None:
        self._metrics.decisions.labels(outcome.reason).inc()
        if outcome.state == RETRY:  # older releases of Kueue do not count
            self._retries[_uid(workload)] = self._retries.get(_uid(workload), 0) + 1
            while len(self._retries) > MOST_REMEMBERED:
                self._retries.popitem(last=False)
        else:
            self._retries.pop(_uid(workload), None)
        log.info("decided", workload=_key(workload), check=check.name, state=outcome.state, reason=outcome.reason, message=outcome.message)


def _key(item: Object) -> str:
    return f"{at(item, 'metadata', 'namespace')}/{at(item, 'metadata', 'name')}"


def _uid(item: Mapping[str, object]) -> str:
    return str(at(item, "metadata", "uid"))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
