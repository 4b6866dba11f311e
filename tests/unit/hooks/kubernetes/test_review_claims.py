"""Reviews of workloads that claim their GPUs, or whose pods run on different ones, with a real service behind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.admission_reviews import FITS, H100, MODES, SPEC, T4, TOO_LARGE, a_container, a_review, a_template, a_workload

from peakgate.hooks.kubernetes.cluster import NoCluster
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.objects import Object
from peakgate.hooks.kubernetes.review import Reviewer

PRODUCT = "device.attributes['gpu.nvidia.com'].productName == 'Tesla T4'"
BETWEEN: Mapping[str, Any] = {
    "model": {"preset": "llama-3.2-1b"},
    "batch": {
        "micro_batch_size": 1,
        "sequence_length": 512,
        "sequence_length_is": "exact",
        "gradient_accumulation_steps": 1,
        "packed": True,
    },
    "precision": {"recipe": "bf16-master"},
    "optimizer": {"name": "adamw", "implementation": "fused"},
    "attention": {"implementation": "flash"},
    "checkpointing": {"mode": "full"},
    "parallelism": {"sharding": "none"},
    "framework": {"name": "huggingface", "version": "4.57.6"},
}
"""More than a card of 16 GB has, and less than one of 80 GB."""

LARGE = {**BETWEEN, "model": {"preset": "llama-3.1-8b"}}
"""The states of eight billion parameters: more than either has."""


@dataclass(frozen=True, slots=True)
class WithDevices(NoCluster):
    """A cluster with a claim template whose class selects a card."""

    expression: str

    async def named_by(self, workload: Object) -> Sequence[Object]:
        """The template and its class."""
        request = {"name": "g", "exactly": {"deviceClassName": "small", "count": 1}}
        template = {"kind": "ResourceClaimTemplate", "metadata": {"name": "gpu", "namespace": workload["metadata"]["namespace"]}}  # type: ignore[index]  # an object
        kind = {"kind": "DeviceClass", "metadata": {"name": "small"}}
        selectors = [{"cel": {"expression": each}} for each in ("device.driver == 'gpu.nvidia.com'", self.expression)]
        return [template | {"spec": {"spec": {"devices": {"requests": [request]}}}}, kind | {"spec": {"selectors": selectors}}]


def claiming(job: Mapping[str, Any]) -> bytes:
    """The review of a Job in an enforced namespace, whose pods claim a GPU by a template."""
    template = a_template(product="", container=a_container(gpus=0), annotations={SPEC: json.dumps(job)})
    template["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    namespace = MODES["enforce"]
    return json.dumps(a_review(a_workload(template=template, metadata={"namespace": namespace}), namespace=namespace)).encode()


async def test_a_claim_tells_the_card(reviewer: Reviewer) -> None:
    """Too large for the card of the class is denied; a class that names none, or a claim that nobody may read, leaves it open."""
    reviewer.cluster = WithDevices(PRODUCT)
    denied = json.loads(await reviewer.validate(claiming(TOO_LARGE)))["response"]
    assert (denied["allowed"], denied["auditAnnotations"]["gpu"]) == (False, "t4-16gb")
    fits = json.loads(await reviewer.validate(claiming(FITS)))["response"]
    assert (fits["allowed"], fits["auditAnnotations"]["verdict"], fits.get("warnings")) == (True, "admit", None)
    for cluster, says in ((WithDevices("true"), "does not say which GPU it takes"), (NoCluster(), "the claim gpu is not known")):
        reviewer.cluster = cluster
        response = json.loads(await reviewer.validate(claiming(TOO_LARGE)))["response"]
        assert (response["allowed"], response["auditAnnotations"]["verdict"]) == (True, "undecided")
        assert says in response["warnings"][0]


@pytest.mark.parametrize(("job", "want"), [(FITS, "admit"), (BETWEEN, "undecided"), (LARGE, "reject")], ids=["fits", "between", "large"])
async def test_pods_on_different_cards(reviewer: Reviewer, job: Mapping[str, Any], want: str) -> None:
    """Fits on both, fits on the larger one alone, fits on neither: the same as under Kueue."""
    template = {product: a_template(product=product, annotations={SPEC: json.dumps(job)}) for product in (T4, H100)}
    for each in template.values():
        each["spec"]["containers"] = [a_container(command=["sleep", "1"])]
    sets = {"Master": {"replicas": 1, "template": template[T4]}, "Worker": {"replicas": 1, "template": template[H100]}}
    workload = a_workload("PyTorchJob") | {"spec": {"pytorchReplicaSpecs": sets}}
    review = a_review(workload, kind="PyTorchJob", namespace=MODES["enforce"])
    response = json.loads(await reviewer.validate(json.dumps(review).encode()))["response"]
    assert (response["auditAnnotations"]["verdict"], response["allowed"]) == (want, want != "reject")
    if want == "undecided":
        assert "fits on NVIDIA-H100-80GB-HBM3 and not for sure on Tesla-T4, and its pods run on both" in response["warnings"][0]


async def test_a_share_is_told_with_its_card(reviewer: Reviewer) -> None:
    """Half an H100 has the kernels and the context of one, and is not called a whole one, neither here nor in what is stored of it."""
    reviewer.facts = lambda: Facts(catalogue={"h100-80gb": 81559 << 20})
    template = a_template(annotations={SPEC: json.dumps(LARGE), "gpu-fraction": "0.5"}, container=a_container(gpus=0))
    review = a_review(a_workload(template=template), namespace=MODES["enforce"])
    response = json.loads(await reviewer.validate(json.dumps(review).encode()))["response"]
    assert (response["allowed"], response["auditAnnotations"]["gpu"]) == (False, "h100-80gb")
    assert "a share of h100-80gb has 42." in response["status"]["message"]
    assert "usable of a share of h100-80gb" in response["auditAnnotations"]["reason"]
