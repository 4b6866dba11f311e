"""AdmissionChecks of this controller and their states on workloads, as data. Pure.

Fields: kueue apis/kueue/v1beta2/{admissioncheck,workload}_types.go, the same in v1beta1 as far as they are used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from peakgate.hooks.kubernetes.annotations import MODE, PREDICTION, RELEASE
from peakgate.hooks.kubernetes.objects import Object, at, list_at, mapping_at

CONTROLLER = "peakgate.io/kueue"
PENDING, READY, RETRY, REJECTED = "Pending", "Ready", "Retry", "Rejected"
"""States of a check on a workload."""

LONGEST_MESSAGE = 1024
"""Kueue takes 32768, and puts it into an event, which takes 1024."""


class CheckMode(StrEnum):
    """off: everything is Ready; warn: a rejection is Ready with a message; enforce: it is Rejected, and Kueue deactivates the workload."""

    off = "off"
    warn = "warn"
    enforce = "enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An AdmissionCheck of this controller. `release`: the reason for which it lets everything through."""

    name: str
    mode: CheckMode
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The new state of a check on a workload. `reason`: a word for metrics; `prediction`: to be found on the pods."""

    state: str
    reason: str
    message: str
    requeue_seconds: int | None = None
    prediction: str = ""


def check_of(check: Object, default: CheckMode) -> Check | None:
    """The check; None for another controller's. A mode that is none counts as the default."""
    if at(check, "spec", "controllerName") != CONTROLLER:
        return None
    annotations = mapping_at(check, "metadata", "annotations")
    word = str(annotations.get(MODE, ""))
    mode = CheckMode(word) if word in set(CheckMode) else default
    return Check(name=str(at(check, "metadata", "name")), mode=mode, release=str(annotations.get(RELEASE, "")))


def waits_for(workload: Object, names: Iterable[str]) -> list[str]:
    """The checks that a workload with reserved quota waits for, of those. Before quota is reserved there is no flavor to judge."""
    known = set(names)
    if not at(workload, "status", "admission") or _is(workload, "Finished") or _is(workload, "Evicted") or _is_inactive(workload):
        return []
    states = list_at(workload, "status", "admissionChecks")
    return [str(at(each, "name")) for each in states if at(each, "state") == PENDING and at(each, "name") in known]


def _is_inactive(workload: Object) -> bool:
    return at(workload, "spec", "active") is False or bool(at(workload, "metadata", "deletionTimestamp"))


def _is(workload: Object, condition: str) -> bool:
    conditions = list_at(workload, "status", "conditions")
    return any(at(each, "type") == condition and at(each, "status") == "True" for each in conditions)


def retries_of(workload: Object, name: str) -> int:
    """How often Kueue has counted a Retry of the check."""
    found = next((at(each, "retryCount") for each in list_at(workload, "status", "admissionChecks") if at(each, "name") == name), 0)
    return found if isinstance(found, int) else 0


def state_patch(workload: Object, name: str, outcome: Outcome, now: str, podsets: Iterable[str]) -> dict[str, object]:
    """A merge patch of the workload's status. It carries the version that was read, because it replaces the list of all states: a change
    of another controller in between makes a conflict instead of being lost."""
    states = [dict(each) for each in list_at(workload, "status", "admissionChecks") if isinstance(each, Mapping)]
    for each in states:
        if each.get("name") != name:
            continue
        each |= {"state": outcome.state, "message": outcome.message[:LONGEST_MESSAGE], "lastTransitionTime": now}
        each.pop("requeueAfterSeconds", None)
        if outcome.requeue_seconds is not None:
            each["requeueAfterSeconds"] = outcome.requeue_seconds
        updates = _updates(workload, states, name, outcome, podsets)
        if updates:
            each["podSetUpdates"] = updates
    return {"metadata": {"resourceVersion": at(workload, "metadata", "resourceVersion")}, "status": {"admissionChecks": states}}


def _updates(workload: Object, states: Iterable[Object], name: str, outcome: Outcome, podsets: Iterable[str]) -> list[dict[str, object]]:
    """The prediction's name as an annotation of the pods. A key that is there already may not be set again (PodSetUpdate)."""
    if outcome.state != READY or not outcome.prediction:
        return []
    taken = {
        str(at(update, "name"))
        for each in states
        if at(each, "name") != name
        for update in list_at(each, "podSetUpdates")
        if PREDICTION in mapping_at(update, "annotations")
    }
    for podset in list_at(workload, "spec", "podSets"):
        if PREDICTION in mapping_at(podset, "template", "metadata", "annotations"):
            taken.add(str(at(podset, "name")))
    return [{"name": each, "annotations": {PREDICTION: outcome.prediction}} for each in podsets if each not in taken]


def active_patch(check: Object, now: str) -> dict[str, object] | None:
    """A merge patch that says that this controller answers for the check; None when the check says so already."""
    conditions = [dict(each) for each in list_at(check, "status", "conditions") if isinstance(each, Mapping)]
    generation = at(check, "metadata", "generation")
    others = [each for each in conditions if each.get("type") != "Active"]
    mine = next((each for each in conditions if each.get("type") == "Active"), {})
    if mine.get("status") == "True" and mine.get("observedGeneration") == generation:
        return None
    since = mine.get("lastTransitionTime") if mine.get("status") == "True" else now
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "peakgate judges the workloads",
        "lastTransitionTime": since,
    }
    condition |= {"observedGeneration": generation} if generation is not None else {}
    version = at(check, "metadata", "resourceVersion")
    return {"metadata": {"resourceVersion": version}, "status": {"conditions": [*others, condition]}}
