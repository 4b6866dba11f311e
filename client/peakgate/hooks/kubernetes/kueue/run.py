"""Runs the controller until it is told to stop: one replica leads, the others wait for its lease."""

from __future__ import annotations

import os
import signal
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

import structlog

from peakgate.client.connect import connect
from peakgate.hooks.kubernetes.api_errors import ApiError
from peakgate.hooks.kubernetes.kueue.checks import CheckMode
from peakgate.hooks.kubernetes.kueue.cluster import Cluster
from peakgate.hooks.kubernetes.kueue.controller import Controller
from peakgate.hooks.kubernetes.kueue.judging import Judge
from peakgate.hooks.kubernetes.kueue.known import Known
from peakgate.hooks.kubernetes.kueue.lease import DURATION_SECONDS, RETRY_SECONDS, Lease
from peakgate.hooks.kubernetes.kueue.metrics import KueueMetrics
from peakgate.hooks.kubernetes.kueue.serving import served
from peakgate.v1.callers import KUBERNETES

log = structlog.get_logger("peakgate.kueue")
PREDICT_SECONDS = 10.0
"""Nobody waits at a prompt: the answer may come with the changes that make a job fit."""

STALE_SECONDS = 60.0
"""A replica that has not spoken with the API server for so long is not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueOptions:
    """`server`: the service; `namespace` and `lease`: of the Lease; `nodes`, `claims`: what is looked at; `may_join`: an autoscaler adds
    nodes of other kinds; `listen`: of metrics and probes, None for none."""

    server: str
    namespace: str
    lease: str
    mode: CheckMode = CheckMode.warn
    nodes: bool = False
    claims: bool = False
    may_join: bool = False
    listen: tuple[str, int] | None = None
    lease_seconds: float = DURATION_SECONDS


class Replica:
    """One process of the controller."""

    def __init__(self, cluster: Cluster, options: KueueOptions, *, identity: str = "") -> None:
        self._cluster = cluster
        self._options = options
        self._identity = identity or f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._spoke_at = self._beat_at = time.monotonic()
        self._has_spoken = False
        self.metrics = KueueMetrics()
        self.stopped = Event()

    def run(self) -> None:
        """Blocks until `stopped` is set; then the lease is given back."""
        lease = Lease(
            self._cluster,
            namespace=self._options.namespace,
            name=self._options.lease,
            identity=self._identity,
            duration_seconds=self._options.lease_seconds,
        )
        retry = RETRY_SECONDS * self._options.lease_seconds / DURATION_SECONDS
        with connect(self._options.server, predict_timeout_seconds=PREDICT_SECONDS, caller=KUBERNETES) as client:
            known = Known(
                self._cluster,
                client,
                nodes=self._options.nodes,
                claims=self._options.claims,
                may_join=self._options.may_join,
                failed=lambda error: self.metrics.failed(error.status),
            )
            judge = Judge(client, facts=known.facts, flavor=known.flavor)
            self._campaign(lease, retry, lambda: Controller(self._cluster, judge.judge, metrics=self.metrics, mode=self._options.mode))
        try:
            lease.release()
        except ApiError as error:
            log.warning("the lease could not be given back", error=str(error))

    def is_alive(self) -> bool:
        """Whether the loop still turns."""
        return time.monotonic() - self._beat_at < STALE_SECONDS

    def is_ready(self) -> bool:
        """Whether the API server has answered lately."""
        return self._has_spoken and time.monotonic() - self._spoke_at < STALE_SECONDS

    def _campaign(self, lease: Lease, retry: float, begin: Callable[[], Controller]) -> None:
        controller: Controller | None = None
        while not self.stopped.is_set():
            self._renew(lease)
            if lease.is_held and controller is None:
                log.info("leads", identity=self._identity)
                controller = begin()
                controller.start()
            elif controller is not None and not (lease.is_held and controller.is_whole):
                log.warning("leads no more", identity=self._identity, has_lease=lease.is_held)
                controller.stop()
                controller = None
            self.metrics.leads.set(controller is not None)
            if controller is not None:
                controller.measure()
            self.stopped.wait(retry)
        if controller is not None:
            controller.stop()

    def _renew(self, lease: Lease) -> None:
        self._beat_at = time.monotonic()
        try:
            lease.renew()
            self._spoke_at, self._has_spoken = time.monotonic(), True
        except ApiError as error:
            self.metrics.failed(error.status)
            log.warning("the lease could not be read or renewed", error=str(error))


def run_kueue(cluster: Cluster, options: KueueOptions) -> None:
    """The program: ends on SIGTERM or Ctrl-C. Raises OSError for a port that cannot be had."""
    replica = Replica(cluster, options, identity=os.environ.get("POD_NAME", ""))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: replica.stopped.set())
    if options.listen is None:
        replica.run()
        return
    with served(options.listen, replica.metrics.registry, is_alive=replica.is_alive, is_ready=replica.is_ready):
        replica.run()
