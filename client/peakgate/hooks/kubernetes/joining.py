"""How the pods of a workload name their prediction to the agent of their node. Pure.

A pod of a Job has the Job's uid as a label (k8s.io/api/batch/v1 types.go, ControllerUidLabel; the older name has no prefix), one of a
JobSet that one's as well (jobset api/jobset/v1alpha2/jobset_types.go, JobSetUIDKey). The training operator, KubeRay and Volcano label pods
with names only.
"""

from __future__ import annotations

from peakgate.hooks.kubernetes.objects import Object, mappings_at, text_at
from peakgate.hooks.kubernetes.templates import templates_of
from peakgate.v1.allocator_report import PREDICTION_VARIABLE

UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid", "jobset.sigs.k8s.io/jobset-uid")
OWN_UID = "metadata.uid"
BY_UID = frozenset({OWN_UID, *(f"metadata.labels['{label}']" for label in UID_LABELS)})
"""Fields of a pod that hold the uid of what was reviewed."""


def joins_by_uid(workload: Object) -> bool:
    """Whether any of its pods names the uid, so that the prediction must be stored under that."""
    return any(
        text_at(each, "name") == PREDICTION_VARIABLE and text_at(each, "valueFrom", "fieldRef", "fieldPath") in BY_UID
        for template in templates_of(workload)
        for container in mappings_at(template.pod, "spec", "containers")
        for each in mappings_at(container, "env")
    )
