"""The break-glass: sets what waits for this controller Ready, without the controller and without the service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peakgate.hooks.kubernetes.api_errors import CONFLICT, NOT_FOUND, ApiError
from peakgate.hooks.kubernetes.kueue.checks import READY, CheckMode, Outcome, check_of, state_patch, waits_for
from peakgate.hooks.kubernetes.kueue.deciding import RELEASED
from peakgate.hooks.kubernetes.kueue.reconciling import Kueue, timestamp
from peakgate.hooks.kubernetes.objects import Object, at

ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One check of one workload; `problem`: why it still waits."""

    workload: str
    check: str
    problem: str = ""


def release(cluster: Kueue, reason: str, *, cluster_queue: str = "") -> Iterator[Released]:
    """Every check of this controller that a workload with quota waits for; of one ClusterQueue when it is named. Raises ApiError."""
    checks = [check for each in cluster.kueue("admissionchecks")[0] if (check := check_of(each, CheckMode.warn)) is not None]
    names = [check.name for check in checks]
    for workload in cluster.kueue("workloads")[0]:
        if cluster_queue and at(workload, "status", "admission", "clusterQueue") != cluster_queue:
            continue
        for name in waits_for(workload, names):
            yield _release(cluster, workload, name, reason)


def _release(cluster: Kueue, workload: Object, name: str, reason: str) -> Released:
    namespace, workload_name = str(at(workload, "metadata", "namespace")), str(at(workload, "metadata", "name"))
    outcome = Outcome(state=READY, reason=RELEASED, message=f"not checked: released by hand ({reason[:200]})")
    told = Released(workload=f"{namespace}/{workload_name}", check=name)
    for _ in range(ATTEMPTS):
        try:
            workload = cluster.workload(namespace, workload_name)
            if waits_for(workload, [name]):
                cluster.patch_workload(namespace, workload_name, state_patch(workload, name, outcome, timestamp(), ()))
        except ApiError as error:
            if error.status == CONFLICT:
                continue
            return told if error.status == NOT_FOUND else Released(workload=told.workload, check=name, problem=str(error))
        return told
    return Released(workload=told.workload, check=name, problem="it changes all the time")
