"""The controller while it leads: watches that tell what there is, a queue of what waits, and the worker that decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Event, Thread

import structlog

from peakgate.hooks.kubernetes.api_errors import NOT_FOUND, ApiError
from peakgate.hooks.kubernetes.kueue.checks import CheckMode, active_patch, check_of
from peakgate.hooks.kubernetes.kueue.deciding import Judged
from peakgate.hooks.kubernetes.kueue.metrics import KueueMetrics
from peakgate.hooks.kubernetes.kueue.reconciling import Kueue, Reconciler, timestamp
from peakgate.hooks.kubernetes.kueue.seen import Seen, key_of
from peakgate.hooks.kubernetes.kueue.watching import Handlers, Watching
from peakgate.hooks.kubernetes.kueue.work_queue import WorkQueue
from peakgate.hooks.kubernetes.objects import Object, at

log = structlog.get_logger("peakgate.kueue")
DELETED = "DELETED"
JOIN_SECONDS = 5.0


class Controller:
    """Watches checks and workloads, and sets states."""

    def __init__(
        self, cluster: Kueue, judge: Callable[[Object], Judged], *, metrics: KueueMetrics, mode: CheckMode = CheckMode.warn
    ) -> None:
        self._metrics = metrics
        self._mode = mode
        self._seen = Seen()
        self._reconciler = Reconciler(cluster, judge, seen=self._seen, metrics=metrics)
        self._queue = WorkQueue()
        self._stopped = Event()
        self._activations: dict[str, Object] = {}
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
        since = self._seen.waiting().values()
        self._metrics.waiting.set(len(since))
        self._metrics.oldest.set(time.monotonic() - min(since) if since else 0.0)

    def _all_checks(self, items: Sequence[Object]) -> None:
        self._seen.keep(checks={_name(each) for each in items})
        for each in items:
            self._one_check("", each)

    def _one_check(self, kind: str, item: Object) -> None:
        name, check = _name(item), check_of(item, self._mode) if kind != DELETED else None
        is_other = self._seen.put_check(name, check)
        if check is None:
            return
        patch = active_patch(item, timestamp())
        if patch is not None:
            self._activations[name] = patch
            self._queue.add(f"/{name}")
        if is_other:
            for key in self._seen.waiting():
                self._queue.add(key)

    def _all_workloads(self, items: Sequence[Object]) -> None:
        self._metrics.synced.set_to_current_time()
        self._seen.keep(workloads={key_of(each) for each in items})
        for each in items:
            self._one_workload("", each)

    def _one_workload(self, kind: str, item: Object) -> None:
        self._metrics.synced.set_to_current_time()
        if self._seen.put_workload(item, is_deleted=kind == DELETED):
            self._queue.add(key_of(item))

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
        """A key without a namespace is a check."""
        if namespace:
            if self._reconciler.decide(namespace, name):
                self._queue.add(f"{namespace}/{name}")
        elif name in self._activations:
            self._reconciler.activate(name, self._activations[name])
            self._activations.pop(name, None)


def _name(item: Object) -> str:
    return str(at(item, "metadata", "name"))
