"""What the controller asks of the API server: one row for each kind of call. The chart's roles grant these and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

GROUP = "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """`verbs` on a resource. `is_named`: on one object by name in the controller's own namespace; `option`: only with this flag."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    is_named: bool = False
    option: str = ""


PERMISSIONS = (
    Permission(group=GROUP, resource="admissionchecks", verbs=("get", "list", "watch")),
    Permission(group=GROUP, resource="admissionchecks/status", verbs=("patch",)),
    Permission(group=GROUP, resource="workloads", verbs=("get", "list", "watch")),
    Permission(group=GROUP, resource="workloads/status", verbs=("patch",)),
    Permission(group=GROUP, resource="resourceflavors", verbs=("list",)),
    Permission(group="", resource="nodes", verbs=("list",), option="--nodes"),
    Permission(group="resource.k8s.io", resource="resourceclaimtemplates", verbs=("list",), option="--claims"),
    Permission(group="resource.k8s.io", resource="resourceclaims", verbs=("list",), option="--claims"),
    Permission(group="resource.k8s.io", resource="deviceclasses", verbs=("list",), option="--claims"),
    Permission(group="resource.k8s.io", resource="resourceslices", verbs=("list",), option="--claims"),
    Permission(group="coordination.k8s.io", resource="leases", verbs=("get", "update"), is_named=True),
)
