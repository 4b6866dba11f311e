"""Patches that a TrainJob lays over its runtime change which GPUs it gets."""

from __future__ import annotations

import json

import pytest

from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.readers.manifests.trainjob import pods_of_train_job
from peakgate.readers.reading import Reading
from peakgate.readers.settings import read_yaml

GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch-distributed"},
    "spec": {
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "spec": {
                                "template": {
                                    "spec": {
                                        "nodeSelector": {PRODUCT: "Tesla-T4"},
                                        "containers": [{"name": "node", "resources": {"limits": {GPU: 1}}}],
                                    }
                                }
                            }
                        },
                    }
                ]
            }
        }
    },
}
POD = {"nodeSelector": {PRODUCT: "NVIDIA-H100-80GB-HBM3"}}
PATCHED = {"name": "node", "template": {"spec": {"template": {"spec": POD}}}}


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"runtimePatches": [{"manager": "a.example.com", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [PATCHED]}}}}]},
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": POD}]},
        {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], **POD}]},
    ],
    ids=["none", "runtimePatches", "podTemplateOverrides", "podSpecOverrides"],
)
def test_patches_of_three_releases_change_the_selector(patch: dict[str, object]) -> None:
    """The card is the patch's, the count the trainer's own."""
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {GPU: 8}}}, **patch}
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "j"}, "spec": spec}
    documents = [read_yaml(json.dumps(each), "object.json")[0] for each in (job, RUNTIME)]
    (pods,) = pods_of_train_job(documents[0], documents, Reading())
    (card,) = cards_of(pods, Facts()).candidates
    assert (card.gpu, card.count, pods.count) == ("h100-80gb" if patch else "t4-16gb", 8, 2)


@pytest.mark.parametrize(
    "patch",
    [
        {"runtimePatches": [{"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": {"metadata": {"annotations": {"gpu-memory": "2000"}}}}}}]}}}}]},
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "metadata": {"annotations": {"gpu-memory": "2000"}}}]},
    ],
    ids=["runtimePatches", "podTemplateOverrides"],
)  # fmt: skip
def test_patches_may_ask_for_a_share(patch: dict[str, object]) -> None:
    """The annotations by which schedulers share cards stand on the pods."""
    spec = {"runtimeRef": {"name": "torch-distributed"}, **patch}
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "j"}, "spec": spec}
    documents = [read_yaml(json.dumps(each), "object.json")[0] for each in (job, RUNTIME)]
    (pods,) = pods_of_train_job(documents[0], documents, Reading())
    (card,) = cards_of(pods, Facts()).candidates
    assert (card.memory_bytes, card.is_part) == (2000 << 20, True)
