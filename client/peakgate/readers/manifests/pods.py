"""The pods of a workload: templates wherever they stand, and how many of each run.

A template is what holds `spec.containers`. How many pods run of it is the product of the counts on the way to it, which holds for a Pod,
Job, CronJob, JobSet (replicas × parallelism), the kinds of the Kubeflow training operator (spec.<framework>ReplicaSpecs.<role>.replicas),
MPIJob, RayJob (replicas × numOfHosts), a Volcano Job (tasks.replicas), AppWrapper, Kueue's Workload (podSets.count) and others alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakgate.readers.convert import whole
from peakgate.readers.place import Stated
from peakgate.readers.settings import Settings

COUNTS = ("replicas", "parallelism", "numOfHosts", "count")
"""Keys that say how many, each 1 when it is not stated."""

_TEMPLATE = re.compile(r"(.*?\b|)spec\.containers\.\d+\.")
_MOST = 1 << 20
MOST_TEMPLATES = MOST_CONTAINERS = 64
"""Of a workload, and of a pod: a manifest with more is not read further."""

MOST_MEMBERS = 1000
"""Of another list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """`spec` and `metadata` of a template; `count` pods run of it. Not `together`: each is a run of its own."""

    spec: Settings
    metadata: Settings
    count: int = 1
    together: bool = True

    def containers(self) -> list[Settings]:
        """Its containers in order, those that prepare left out."""
        return members(self.spec, "containers")[:MOST_CONTAINERS]


def pods_of(workload: Settings) -> list[Pods]:
    """Every template of a workload, in the order of the file."""
    prefixes = dict.fromkeys(match[1] for path in workload.leaves if (match := _TEMPLATE.match(path)))
    return [_pods(workload, prefix.rstrip(".")) for prefix in list(prefixes)[:MOST_TEMPLATES]]


def _pods(workload: Settings, prefix: str) -> Pods:
    template = workload.under(prefix) if prefix else workload
    parts = prefix.split(".") if prefix else []
    count, together = 1, True
    for depth in range(1, len(parts)):
        at = ".".join(parts[:depth])
        completions = max(1, _number(workload(f"{at}.completions"), _MOST))
        for key in COUNTS:
            count *= min(_number(workload(f"{at}.{key}"), 1), completions)
        together = together and not _is_a_bag_of_work(workload, at)
    return Pods(spec=template.under("spec"), metadata=template.under("metadata"), count=min(count, _MOST), together=together)


def _is_a_bag_of_work(workload: Settings, at: str) -> bool:
    """A Job of several pods without an index: none of them knows of the others."""
    mode = workload(f"{at}.completionMode")
    alone = at in ("spec", "spec.jobTemplate.spec")
    return alone and workload(f"{at}.parallelism") is not None and (mode is None or mode.text != "Indexed")


def _number(stated: Stated | None, otherwise: int) -> int:
    try:
        number = whole(stated) if stated is not None else otherwise
    except ValueError:
        return otherwise
    return number if 0 <= number <= _MOST else otherwise


def number_at(settings: Settings, *paths: str) -> int:
    """The number of the first path that states one; 0 for none."""
    return next((number for path in paths if (number := _number(settings(path), 0))), 0)


def members(settings: Settings, path: str) -> list[Settings]:
    """The members of a list of mappings."""
    start, found = f"{path}.", dict[str, dict[str, Stated]]()
    for each, stated in settings.leaves.items():
        if each.startswith(start):
            index, inside, rest = each[len(start) :].partition(".")
            if inside and index.isdigit():
                found.setdefault(index, {})[rest] = stated
    return [Settings(leaves) for leaves in found.values()][:MOST_MEMBERS]
