"""Sets the state of a check on a workload, and says of a check that this controller answers for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import structlog

from peakgate.hooks.kubernetes.api_errors import CONFLICT, ApiError
from peakgate.hooks.kubernetes.kueue.checks import READY, RETRY, Check, Outcome, retries_of, state_patch
from peakgate.hooks.kubernetes.kueue.deciding import FAULT, Judged, decided, settled
from peakgate.hooks.kubernetes.kueue.metrics import KueueMetrics
from peakgate.hooks.kubernetes.kueue.seen import Seen, key_of
from peakgate.hooks.kubernetes.kueue.watching import Source
from peakgate.hooks.kubernetes.objects import Object, at

log = structlog.get_logger("peakgate.kueue")
MOST_REMEMBERED = 10_000


class Kueue(Source, Protocol):
    """The calls that change something."""

    def workload(self, namespace: str, name: str) -> Object:
        """Raises ApiError."""

    def patch_workload(self, namespace: str, name: str, patch: Object) -> None:
        """Raises ApiError."""

    def patch_check(self, name: str, patch: Object) -> None:
        """Raises ApiError."""


class Reconciler:
    """Every method raises ApiError."""

    def __init__(self, cluster: Kueue, judge: Callable[[Object], Judged], *, seen: Seen, metrics: KueueMetrics) -> None:
        self._cluster = cluster
        self._judge = judge
        self._seen = seen
        self._metrics = metrics
        self._retries: OrderedDict[str, int] = OrderedDict()

    def activate(self, name: str, patch: Object) -> None:
        """Patches a check; what changed it in between comes as an event."""
        try:
            self._cluster.patch_check(name, patch)
        except ApiError as error:
            if error.status != CONFLICT:
                raise

    def decide(self, namespace: str, name: str) -> bool:
        """Sets the first check that a workload waits for; whether another one is left, which starts from the new version."""
        workload = self._cluster.workload(namespace, name)
        checks = self._seen.checks_of(workload)
        if not checks:
            return False
        outcome, podsets = self._outcome(workload, checks[0])
        self._cluster.patch_workload(namespace, name, state_patch(workload, checks[0].name, outcome, timestamp(), podsets))
        self._note(workload, checks[0], outcome)
        return len(checks) > 1

    def _outcome(self, workload: Object, check: Check) -> tuple[Outcome, Sequence[str]]:
        outcome = settled(check)
        if outcome is not None:
            return outcome, ()
        try:
            judged = self._judge(workload)
        except Exception:  # a workload that waits for ever is worse than one that goes on unchecked
            log.exception("a workload could not be judged", workload=key_of(workload))
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
        log.info(
            "decided", workload=key_of(workload), check=check.name, state=outcome.state, reason=outcome.reason, message=outcome.message
        )


def _uid(item: Object) -> str:
    return str(at(item, "metadata", "uid"))


def timestamp() -> str:
    """Of now, as the API writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
