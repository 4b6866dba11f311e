"""Pods, nodes and claims of Kubernetes for tests, with full defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from peakgate.hooks.kubernetes.facts import Node
from peakgate.readers.manifests.pods import Pods, pods_of
from peakgate.readers.settings import read_yaml


def the_pods(document: Mapping[str, object]) -> Pods:
    """The only template of an object."""
    (pods,) = pods_of(read_yaml(json.dumps(document), "object.json")[0])
    return pods


def a_pod(
    limits: Mapping[str, object] | None = None,
    *,
    selector: Mapping[str, str] | None = None,
    terms: Sequence[object] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: object,
) -> Pods:
    """A bare Pod whose one container asks for `limits`."""
    container = {"name": "train", "image": "train", "resources": {"limits": dict(limits or {})}}
    body: dict[str, object] = {"containers": [container], **spec}
    if selector:
        body["nodeSelector"] = dict(selector)
    if terms:
        body["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return the_pods({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": dict(annotations or {})}, "spec": body})


def a_term(key: str, operator: str, *values: str) -> dict[str, object]:
    """A term of a node affinity with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def a_node(labels: Mapping[str, str], *, name: str = "gpu-1", **has: str) -> Node:
    """A node; `gpus` of it in `has` is nvidia.com/gpu."""
    counts = {"nvidia.com/gpu": has.pop("gpus", "8"), **has}
    return Node(name=name, labels=labels, has=counts)
