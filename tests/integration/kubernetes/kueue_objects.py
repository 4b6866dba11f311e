"""Objects of Kueue for tests, with full defaults."""

from __future__ import annotations

from typing import Any

import yaml
from tests.integration.kubernetes.api_server import KUEUE, LEASES, ApiServer

Json = dict[str, Any]
GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
LARGE: Json = {
    "model": {"preset": "llama-3.1-8b"},
    "batch": {
        "micro_batch_size": 4,
        "sequence_length": 8192,
        "sequence_length_is": "exact",
        "gradient_accumulation_steps": 1,
        "packed": True,
    },
    "precision": {"recipe": "bf16-master"},
    "optimizer": {"name": "adamw", "implementation": "fused"},
    "attention": {"implementation": "flash"},
    "checkpointing": {"mode": "full"},
    "parallelism": {"world_size": 1, "sharding": "none"},
    "framework": {"name": "huggingface", "version": "4.57.6"},
    "gpu": {"count": 1},
}
"""Eight billion parameters with AdamW on one GPU: more than any card of the catalogue but the largest has."""

SMALL = LARGE | {"model": {"preset": "gpt2"}, "batch": LARGE["batch"] | {"micro_batch_size": 1, "sequence_length": 512}}

MIDDLE = SMALL | {"model": {"preset": "llama-3.2-1b"}}
"""More than a card of 16 GB has, and less than one of 80 GB."""


def a_check(name: str = "peakgate", *, mode: str = "", release: str = "", controller: str = "peakgate.io/kueue") -> Json:
    """An AdmissionCheck."""
    annotations = {"peakgate.io/mode": mode} if mode else {}
    annotations |= {"peakgate.io/release": release} if release else {}
    return {"metadata": {"name": name, "generation": 1, "annotations": annotations}, "spec": {"controllerName": controller}}


def a_flavor(name: str = "h100", product: str = "NVIDIA-H100-80GB-HBM3") -> Json:
    """A ResourceFlavor."""
    return {"metadata": {"name": name}, "spec": {"nodeLabels": {PRODUCT: product} if product else {}}}


def a_workload(
    name: str = "train", job: Json | None = None, *, flavor: str = "h100", checks: tuple[str, ...] = ("peakgate",), gpus: int = 1,
    annotations: dict[str, str] | None = None, has_quota: bool = True,
) -> Json:  # fmt: skip
    """A Workload with one pod, whose quota is reserved and whose checks are pending."""
    spec = {"peakgate.io/spec": yaml.safe_dump(job)} if job is not None else {}
    template = {
        "metadata": {"annotations": {**spec, **(annotations or {})}},
        "spec": {"containers": [{"name": "train", "image": "t", "command": ["run"], "resources": {"limits": {GPU: gpus} if gpus else {}}}]},
    }
    admission = {"clusterQueue": "gpus", "podSetAssignments": [{"name": "main", "flavors": {GPU: flavor}, "count": 1}]}
    states = [{"name": each, "state": "Pending", "message": "", "lastTransitionTime": "2026-11-30T00:00:00Z"} for each in checks]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team-a", "uid": f"uid-{name}"},
        "spec": {"active": True, "podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": {"admissionChecks": states} | ({"admission": admission} if has_quota else {}),
    }


def a_cluster(*checks: Json) -> ApiServer:
    """An API server with flavors, a Lease and checks."""
    server = ApiServer()
    for each in (a_flavor(), a_flavor("t4", "Tesla-T4"), a_flavor("bare", "")):
        server.put(KUEUE, "resourceflavors", each)
    server.put(LEASES, "leases", {"metadata": {"name": "peakgate-kueue", "namespace": "peakgate"}})
    for each in checks or (a_check(),):
        server.put(KUEUE, "admissionchecks", each)
    return server
