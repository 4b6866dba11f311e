"""What the controller asks of the API server: call by call. The chart's roles grant these and nothing else."""

from __future__ import annotations

from peakgate.hooks.kubernetes.permissions import Permission

GROUP = "kueue.x-k8s.io"


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
