"""Which resources are GPUs, and which others have the same maker."""

from __future__ import annotations

import json

import pytest
from tests.admission_reviews import LARGE, SPEC, T4, TOO_LARGE, a_container, a_review, a_template, a_workload

from peakgate.hooks.kubernetes.requests import is_gpu, may_be_gpu
from peakgate.hooks.kubernetes.review import Reviewer

GPUS = ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.me", "volcano.sh/vgpu-number"]
MAYBE = ["nvidia.com/a100", "nvidia.com/GA102GL_A10", "nvidia.com/gpumem", "nvidia.com/gpucores", "run.ai/gpu-memory"]
OTHERS = [
    "nvidia.com/hostdev",
    "nvidia.com/rdma_shared_device_a",
    "nvidia.com/sriov_rdma_vf",
    "nvidia.com/mlnxnics",
    "nvidia.com/resibp24s0",
    "nvidia.com/cx7_ib",
    "nvidia.com/ib0",
    "nvidia.com/bf_sf",
    "nvidia.com/roce_gdr",
    "rdma/hca_shared_devices",
    "amd.com/gpu",
    "cpu",
]


def test_a_resource_is_a_gpu_may_be_one_or_is_none() -> None:
    """A device plugin may be told to call its cards by another name; NVIDIA's network cards are no GPUs."""
    assert [(is_gpu(each), may_be_gpu(each)) for each in GPUS] == [(True, True)] * len(GPUS)
    assert [(is_gpu(each), may_be_gpu(each)) for each in MAYBE] == [(False, True)] * len(MAYBE)
    assert [(is_gpu(each), may_be_gpu(each)) for each in OTHERS] == [(False, False)] * len(OTHERS)


@pytest.mark.parametrize(("resource", "want"), [("nvidia.com/hostdev", False), ("nvidia.com/cx7_ib", False), ("nvidia.com/a100", True)])
async def test_who_asks_for_a_network_card_alone_is_passed_in_silence(reviewer: Reviewer, resource: str, *, want: bool) -> None:
    """As a pod without GPUs is, whatever it runs."""
    container = a_container(command=LARGE.split(), gpus=0) | {"resources": {"limits": {resource: "1"}}}
    workload = a_workload(template=a_template(product="", container=container))
    response = json.loads(await reviewer.validate(json.dumps(a_review(workload)).encode()))["response"]
    assert ("auditAnnotations" in response) is want


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("word", ["a command", "a document", "nothing"])
async def test_a_pod_of_more_containers_than_are_read_says_so(reviewer: Reviewer, kind: str, word: str) -> None:
    """Its launch and its GPUs may stand in those that are not looked at, so that it is not denied, nor where a document states them; in
    silence where nothing trains."""
    template = a_template(product=T4, container=a_container(command=LARGE.split() if word == "a command" else ["sleep", "1"]))
    template["spec"]["containers"] += [{"name": f"c{number}", "image": "x", "command": ["sleep", "1"]} for number in range(500)]
    if word == "a document":
        template["metadata"]["annotations"][SPEC] = json.dumps({**TOO_LARGE, "gpu": {"type": "t4-16gb"}})
        template["spec"]["containers"][400]["command"] = ["python", "train.py"]
    review = a_review(a_workload(kind, template=template), kind=kind, namespace="enforced-a")
    response = json.loads(await reviewer.validate(json.dumps(review).encode()))["response"]
    assert response["allowed"] is True
    said = "\n".join(response.get("warnings", []))
    want = {
        "a command": "not checked: a pod has more than 64 containers, which are too many to be read; state the job in the annotation",
        "a document": "admitted, for a part of the launch is not known here",
        "nothing": "",
    }
    assert want[word] in said
    assert bool(said) is bool(want[word])
