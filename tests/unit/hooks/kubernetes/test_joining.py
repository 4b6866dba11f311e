"""How the pods of a workload name their prediction."""

from __future__ import annotations

from typing import Any

import pytest
from tests.admission_reviews import a_container, a_template, a_workload

from peakgate.hooks.kubernetes.joining import joins_by_uid


def naming(field: str, *, variable: str = "PEAKGATE_PREDICTION", kind: str = "Job") -> dict[str, Any]:
    """A workload whose container takes a variable from a field of its pod."""
    variables = [{"name": "A", "value": "b"}, {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": field}}}]
    return a_workload(kind, template=a_template(container=a_container() | {"env": variables}))


@pytest.mark.parametrize(
    ("workload", "want"),
    [
        (naming("metadata.labels['batch.kubernetes.io/controller-uid']"), True),
        (naming("metadata.labels['controller-uid']", kind="CronJob"), True),
        (naming("metadata.labels['jobset.sigs.k8s.io/jobset-uid']", kind="JobSet"), True),
        (naming("metadata.uid", kind="Pod"), True),
        (naming("metadata.annotations['peakgate.io/prediction']"), False),
        (naming("metadata.uid", variable="POD_UID"), False),
        (a_workload(), False),
        ({"spec": {"template": {"spec": {"containers": [{"env": [7, {"name": "PEAKGATE_PREDICTION", "valueFrom": []}]}, None]}}}}, False),
    ],
)
def test_the_uid_is_named_by_a_field_of_the_pod(workload: dict[str, Any], want: bool) -> None:
    """Wherever the pod stands in the object."""
    assert joins_by_uid(workload) is want
