"""Whether every node that a pod may be given has the label of its GPUs' memory, so that an affinity on it keeps the pod from none. Pure."""

from __future__ import annotations

import json

from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.node_labels import MEMORY
from peakgate.hooks.kubernetes.objects import Object, mapping_at
from peakgate.hooks.kubernetes.quantities import count_of
from peakgate.hooks.kubernetes.requests import GPU
from peakgate.hooks.kubernetes.selection import EXISTS, GREATER, IN, LESS, Requirement, selection_of
from peakgate.readers.files import FileError
from peakgate.readers.settings import read_yaml

SELECTING = ("nodeSelector", "affinity")
DISCOVERED = tuple(
    f"nvidia.com/gpu.{each}"
    for each in (
        "product",
        "memory",
        "count",
        "family",
        "machine",
        "replicas",
        "compute.major",
        "compute.minor",
        "mode",
        "sharing-strategy",
    )
)
"""Labels that gpu-feature-discovery writes, all of them together (NVIDIA/k8s-device-plugin docs/gpu-feature-discovery/README.md)."""

DEMANDING = frozenset({IN, EXISTS, GREATER, LESS})


def is_labelled_wherever(pod: Object, facts: Facts) -> bool:
    """By the nodes with GPUs that its selection allows; where none is known, by a selection that demands a label of the same writer."""
    spec = mapping_at(pod, "spec")
    try:
        settings = read_yaml(json.dumps({key: spec[key] for key in SELECTING if key in spec}), "pod")[0]
    except FileError:
        return False
    selection = selection_of(settings)
    nodes = [each for each in facts.nodes or () if count_of(each.has.get(GPU, "0")) and selection.matches(each.labels)]
    if nodes:
        return all(MEMORY in each.labels for each in nodes)
    return all(any(_is_discovered(each) for each in branch) for branch in selection.branches())


def _is_discovered(requirement: Requirement) -> bool:
    return requirement.key in DISCOVERED and requirement.operator in DEMANDING
