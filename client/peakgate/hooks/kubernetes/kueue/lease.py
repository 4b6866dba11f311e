"""Who of several replicas leads, by a Lease of coordination.k8s.io.

Own, because the leader election of the official client (kubernetes/leaderelection) cannot be told to stop, gives nothing back at the end,
dies of an API server that does not answer, and connects with a configuration of its own. The rules are those of client-go
(tools/leaderelection): a holder counts as gone when its record has not changed for its duration on this process' own clock, so that clocks
need not agree; who cannot renew in time steps down before another can take over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from peakgate.hooks.kubernetes.api_errors import CONFLICT, ApiError
from peakgate.hooks.kubernetes.objects import Object, at, mapping_at

DURATION_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 15.0, 10.0, 2.0
"""As client-go's defaults in Kubernetes' own controllers."""


class Leases(Protocol):
    """Where the Lease is kept."""

    def lease(self, namespace: str, name: str) -> Object:
        """Raises ApiError."""

    def replace_lease(self, namespace: str, name: str, lease: Object) -> Object:
        """Raises ApiError."""


class Lease:
    """One replica's view of it. Call `renew` every RETRY_SECONDS or so."""

    def __init__(
        self, leases: Leases, *, namespace: str, name: str, identity: str, duration_seconds: float = DURATION_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._leases = leases
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._duration_seconds = duration_seconds
        self._clock = clock
        self._seen: object = None
        self._seen_at = float("-inf")
        self._renewed_at = float("-inf")

    @property
    def is_held(self) -> bool:
        """Whether this replica leads: it stops to before another may begin."""
        return self._clock() - self._renewed_at < self._duration_seconds * RENEW_SECONDS / DURATION_SECONDS

    def renew(self) -> bool:
        """Takes or keeps the Lease where that can be done now; whether this replica leads. Raises ApiError."""
        now = self._clock()
        lease = self._leases.lease(self._namespace, self._name)
        spec = mapping_at(lease, "spec")
        record = (at(spec, "holderIdentity"), at(spec, "renewTime"))
        if record != self._seen:
            self._seen, self._seen_at = record, now
        holder = record[0]
        if holder not in (None, "", self._identity) and now - self._seen_at < self._their_seconds(spec):
            self._renewed_at = float("-inf")
            return False
        try:
            self._leases.replace_lease(self._namespace, self._name, self._taken(lease, is_mine=holder == self._identity))
        except ApiError as error:
            if error.status == CONFLICT:  # another was quicker
                return self.is_held
            raise
        self._renewed_at = now
        return True

    def release(self) -> None:
        """Lets another lead at once. Raises ApiError."""
        if not self.is_held:
            return
        self._renewed_at = float("-inf")
        lease = dict(self._leases.lease(self._namespace, self._name))
        if at(lease, "spec", "holderIdentity") == self._identity:
            lease["spec"] = {**mapping_at(lease, "spec"), "holderIdentity": "", "leaseDurationSeconds": 1}
            self._leases.replace_lease(self._namespace, self._name, lease)

    def _their_seconds(self, spec: Object) -> float:
        stated = at(spec, "leaseDurationSeconds")
        return float(stated) if isinstance(stated, int | float) else self._duration_seconds

    def _taken(self, lease: Object, *, is_mine: bool) -> dict[str, object]:
        spec, now = dict(mapping_at(lease, "spec")), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if not is_mine:
            transitions = spec.get("leaseTransitions")
            spec |= {"acquireTime": now, "leaseTransitions": (transitions if isinstance(transitions, int) else 0) + 1}
        spec |= {"holderIdentity": self._identity, "renewTime": now, "leaseDurationSeconds": max(1, round(self._duration_seconds))}
        return {**lease, "spec": spec}
