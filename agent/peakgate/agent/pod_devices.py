"""Which container holds which GPU, from what the kubelet says.

A device plugin names a GPU by its UUID, alone or with a slot behind it when the GPU is shared: `::N` (NVIDIA's plugin, time slicing and
MPS), `/vgpuN` (GKE), `-N` (HAMi). GKE names GPUs after their device files, nvidia2/gi9. By dynamic resource allocation the kubelet knows
driver, pool and device only. Names that mean nothing here are left out: nobody is said to hold a GPU who may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from peakgate.agent.gpu_numbers import GpuNumbers
from peakgate.kubelet.v1 import pod_resources_pb2 as pb

HEX = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
UUID = re.compile(rf"GPU-{HEX}|MIG-{HEX}|MIG-GPU-{HEX}/\d+/\d+")
"""NVML's UUIDs; the last is a MIG instance's before driver 470."""
BY_UUID = re.compile(rf"(?P<name>{UUID.pattern})(?:::\d+|/vgpu\d+|-\d+)?")
BY_DEVICE_FILE = re.compile(r"(?P<name>nvidia\d+(?:/gi\d+)?)(?:/vgpu\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Holder:
    """A container. There is no pod uid in the kubelet's answer: a process's job stays the uid in its control group."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class Holdings:
    """The containers by GPU, each once however many slots it has; keys are UUIDs, or names of device files."""

    by_name: Mapping[str, frozenset[Holder]]

    def of(self, gpu_uuid: str, numbers: GpuNumbers | None = None) -> tuple[Holder, ...]:
        """Who holds the GPU."""
        found = self.by_name.get(gpu_uuid, frozenset())
        if numbers:
            file = f"nvidia{numbers.minor}" + ("" if numbers.instance is None else f"/gi{numbers.instance}")
            found |= self.by_name.get(file, frozenset())
        return tuple(sorted(found))


def gpu_name(device_id: str) -> str:
    """The GPU that a device plugin's id names: a UUID, or a device file's name; empty for what is no GPU of NVIDIA's."""
    match = BY_UUID.fullmatch(device_id) or BY_DEVICE_FILE.fullmatch(device_id)
    return match["name"] if match else ""


def holdings(response: pb.ListPodResourcesResponse, *, uuid_of: Callable[[str, str, str], str]) -> Holdings:
    """Who holds what. `uuid_of` resolves driver, pool and device of a claim to a UUID, or to an empty text."""
    by_name: dict[str, set[Holder]] = {}
    for pod in response.pod_resources:
        for container in pod.containers:
            holder = Holder(namespace=pod.namespace, pod=pod.name, container=container.name)
            for name in _names(container, uuid_of):
                by_name.setdefault(name, set()).add(holder)
    return Holdings({name: frozenset(holders) for name, holders in by_name.items() if name})


def _names(container: pb.ContainerResources, uuid_of: Callable[[str, str, str], str]) -> list[str]:
    plugins = [gpu_name(device) for devices in container.devices for device in devices.device_ids]
    claimed = [device for claim in container.dynamic_resources for device in claim.claim_resources]
    return plugins + [uuid_of(device.driver_name, device.pool_name, device.device_name) for device in claimed]
