"""The cards of workloads whose pods are not all alike."""

from __future__ import annotations

from typing import Any

import pytest
from tests.admission_reviews import H100, T4, a_container, a_template
from tests.unit.hooks.kubernetes.pods import a_node

from peakgate.hooks.kubernetes.candidates import Cards
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.workload_cards import cards_of_workload
from peakgate.memory.catalog.gpus import GPUS
from peakgate.readers.manifests.pods import pods_of
from peakgate.readers.settings import read_yaml

GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
CATALOGUE = {name: spec.total_bytes for name, spec in GPUS.items()}


def a_set(product: str = H100, *, gpus: int = 1, replicas: int = 1) -> dict[str, Any]:
    """Pods of one kind."""
    return {"replicas": replicas, "template": a_template(product=product, container=a_container(gpus=gpus))}


def cards(facts: Facts = Facts(catalogue=CATALOGUE), **sets: dict[str, Any]) -> Cards:  # noqa: B008 - it is frozen
    """Of a PyTorchJob with these sets."""
    document = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "x"}, "spec": {"pytorchReplicaSpecs": sets}}
    return cards_of_workload(pods_of(read_yaml(str(document), "job")[0]), facts)


def told(found: Cards) -> tuple[list[str], bool, int, int]:
    """Names, whether they are mixed, and the numbers of GPUs."""
    return [each.gpu for each in found.candidates], found.is_mixed, found.gpus, found.pod_gpus


def test_a_launcher_does_not_count() -> None:
    """It has no GPU, whatever else it names."""
    found = cards(Launcher=a_set(T4, gpus=0), Worker=a_set(H100, gpus=8, replicas=2))
    assert told(found) == (["h100-80gb"], False, 16, 8)
    assert not cards(Launcher=a_set(T4, gpus=0)).has_gpus


def test_sets_on_different_cards_have_all_of_them() -> None:
    """From the least memory to the most, whatever their order in the object."""
    found = cards(Master=a_set(H100, gpus=2), Worker=a_set(T4, gpus=4, replicas=3))
    assert told(found) == (["t4-16gb", "h100-80gb"], True, 14, 4)


def test_sets_on_like_cards_are_not_mixed() -> None:
    """Their numbers may be different, and so may the labels that say what they are."""
    other = a_set("")
    other["template"]["spec"]["nodeSelector"] = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert told(cards(Master=a_set(H100, gpus=2), Worker=a_set(H100, gpus=8), Other=other)) == (["h100-80gb"], False, 11, 8)


def test_a_set_of_no_pods_does_not_count() -> None:
    """It gets nothing."""
    assert told(cards(Master=a_set(H100), Worker=a_set(T4, replicas=0))) == (["h100-80gb"], False, 1, 1)


def test_a_set_of_which_nothing_is_known_leaves_the_job_open() -> None:
    """Its worst rank may run there."""
    found = cards(Master=a_set(T4), Worker=a_set(""))
    assert (found.candidates, found.is_mixed, "does not say which GPU it takes" in found.doubt) == ((), True, True)
    assert not cards(Master=a_set(""), Worker=a_set("")).is_mixed


@pytest.mark.parametrize(("may_join", "want"), [(True, False), (False, True)])
def test_all_sets_must_be_known_to_the_end(may_join: bool, want: bool) -> None:
    """One names its card, the other takes what the autoscaler brings."""
    facts = Facts(nodes=[a_node({PRODUCT: T4}), a_node({PRODUCT: H100})], nodes_may_join=may_join, catalogue=CATALOGUE)
    found = cards(facts, Master=a_set(T4), Worker=a_set(""))
    assert (told(found)[:2], found.is_complete) == ((["t4-16gb", "h100-80gb"], True), want)
