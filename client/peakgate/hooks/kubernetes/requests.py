"""GPUs that a pod asks for by resources, as the scheduler adds them up. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakgate.hooks.kubernetes.quantities import count_of
from peakgate.readers.manifests.pods import Pods, members
from peakgate.readers.settings import Settings

GPU, MIG, SHARED, VOLCANO = "nvidia.com/gpu", "nvidia.com/mig-", "nvidia.com/gpu.", "volcano.sh/vgpu-number"
"""NVIDIA's device plugin: whole cards, slices under the strategy `mixed`, and shared cards that it was told to rename (gpu.shared);
Volcano's vGPUs (volcano-sh/devices, docs/config.md)."""

NVIDIA, SHARES = "nvidia.com/", ("volcano.sh/vgpu", "run.ai/gpu")
_OTHER_DEVICE = re.compile(r"hostdev|rdma|roce|mlnx|sriov|switchdev|imex|^resib|(?:^|[_.-])(?:ib|nic|vf|sf)s?\d*(?:[_.-]|$)")
"""NVIDIA's network cards, and channels between GPUs, under the same prefix: names in the NVIDIA Network Operator's documentation (hostdev,
rdma_shared_device_*, sriov_*, mlnxnics, resibp*, bf_sf) and in the DRA driver's (imex)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`count` of one resource for each pod. `source`: where that is said."""

    resource: str
    count: int
    source: str

    @property
    def profile(self) -> str:
        """Of MIG slices: 3g.20gb. A dot stands for the plus that a resource's name may not have (1g.5gb.me)."""
        return self.resource.removeprefix(MIG).replace(".me", "+me") if self.resource.startswith(MIG) else ""


def requests_of(pods: Pods) -> list[Request]:
    """Each resource that is a GPU with its count: containers run side by side, and those that prepare one after another before them."""
    together: dict[str, int] = {}
    before: dict[str, int] = {}
    for container in pods.containers():
        _add(together, _asked(container))
    for container in members(pods.spec, "initContainers"):
        asked, policy = _asked(container), container("restartPolicy")
        if policy is not None and policy.text == "Always":
            _add(together, asked)
        else:
            before |= {name: max(before.get(name, 0), count) for name, count in asked.items()}
    counts = {name: max(together.get(name, 0), before.get(name, 0)) for name in (*together, *before)}
    return [Request(resource=name, count=count, source=f"resources {name}") for name, count in counts.items() if count]


def is_gpu(resource: str) -> bool:
    """Whether a resource's name is one of a GPU or a part of one."""
    return resource in (GPU, VOLCANO) or resource.startswith((MIG, SHARED))


def may_be_gpu(resource: str) -> bool:
    """The same, and names that a device plugin was told to give its cards, which cannot be counted. Not other devices of the same maker."""
    if is_gpu(resource) or resource.startswith(SHARES):
        return True
    return resource.startswith(NVIDIA) and not _OTHER_DEVICE.search(resource.removeprefix(NVIDIA))


def _asked(container: Settings) -> dict[str, int]:
    """Limits win over requests: for extended resources the two are equal."""
    found: dict[str, int] = {}
    for part in ("resources.requests", "resources.limits"):
        leaves = container.under(part).leaves
        found |= {name: count_of(stated.text) for name, stated in leaves.items() if is_gpu(name) and stated.value is not None}
    return found


def _add(counts: dict[str, int], asked: dict[str, int]) -> None:
    for name, count in asked.items():
        counts[name] = counts.get(name, 0) + count
