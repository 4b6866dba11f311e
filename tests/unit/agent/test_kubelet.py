"""The kubelet's PodResources API, against a real gRPC server of that API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GPU, OTHER_GPU
from tests.unit.agent.pod_resources_api import KubeletService, a_container, a_pod, serving

from peakgate.agent.errors import KubeletError
from peakgate.agent.gpu_numbers import GpuNumbers
from peakgate.agent.kubelet import Kubelet
from peakgate.agent.pod_devices import Holder, gpu_name
from peakgate.agent.pod_watch import PodWatch

MIG = "MIG-265a219d-a49f-578a-825d-222c72699c16"
OLD_MIG = f"MIG-{GPU}/9/0"
TRAINER = Holder(namespace="research", pod="train-0", container="trainer")
CLAIM = ("gpu.nvidia.com", "node-7", "gpu-0")


class Node:
    """A kubelet on a socket, and a watch that asks it."""

    def __init__(self, folder: Path) -> None:
        self.service = KubeletService()
        self.socket = folder / "kubelet.sock"
        self.kubelet = Kubelet(socket=self.socket, timeout_seconds=5)
        self.uuids: dict[tuple[str, str, str], str] = {}
        self.watch = PodWatch(kubelet=self.kubelet, uuid_of=lambda *device: self.uuids.get(device, ""), period_seconds=0.01)

    def holders(self, gpu: str = GPU, numbers: GpuNumbers | None = None) -> tuple[Holder, ...] | None:
        """Who holds the GPU, asked now."""
        self.watch.look()
        return self.watch.holders(gpu, numbers)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A node whose kubelet is up."""
    node = Node(tmp_path)
    with serving(node.service, node.socket):
        yield node
        node.watch.stop()


def until(condition: Callable[[], bool]) -> None:
    """Waits for it, for long at most."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def test_a_container_holds_the_gpus_that_its_plugin_gave_it(node: Node) -> None:
    """The kubelet's own names for pod and container; a GPU that nobody was given has no holder."""
    node.service.pods = [a_pod("train-0", a_container(gpu=[GPU]), a_container("sidecar")), a_pod("web", a_container("nginx"))]
    assert node.holders() == (TRAINER,)
    assert node.holders(OTHER_GPU) == ()


@pytest.mark.parametrize(
    ("device_id", "want"),
    [
        (GPU, GPU),
        (f"{GPU}::3", GPU),
        (f"{GPU}-7", GPU),
        (f"{GPU}/vgpu1", GPU),
        (MIG, MIG),
        (f"{MIG}::7", MIG),
        (OLD_MIG, OLD_MIG),
        ("nvidia2", "nvidia2"),
        ("nvidia2/vgpu0", "nvidia2"),
        ("nvidia2/gi9", "nvidia2/gi9"),
        ("nvidia2/gi9/vgpu1", "nvidia2/gi9"),
        ("", ""),
        ("0", ""),
        ("0000:03:00.0", ""),
        ("nvidiactl", ""),
        (GPU[:-1], ""),
        (f"{GPU}::", ""),
        (f"x{GPU}", ""),
        (f"{GPU}\n", ""),
        (MIG.upper(), ""),
    ],
)
def test_a_device_id_names_a_gpu(device_id: str, want: str) -> None:
    """Slots of a shared GPU are stripped; what is no GPU's name is nobody's."""
    assert gpu_name(device_id) == want


def test_a_shared_gpu_has_all_its_holders_each_once(node: Node) -> None:
    """Two slots of one container are not two holders; two pods are."""
    node.service.pods = [
        a_pod("train-0", a_container(gpu_shared=[f"{GPU}::0", f"{GPU}::3"])),
        a_pod("train-1", a_container(gpu_shared=[f"{GPU}::1"])),
    ]
    assert node.holders() == (TRAINER, Holder(namespace="research", pod="train-1", container="trainer"))


def test_a_mig_instance_is_held_and_not_its_gpu(node: Node) -> None:
    """The instance's own UUID, under whatever resource name the strategy gives it."""
    node.service.pods = [a_pod("train-0", a_container(mig_1g_10gb=[MIG]))]
    assert (node.holders(MIG), node.holders(GPU)) == ((TRAINER,), ())


def test_a_device_file_is_found_by_the_minor_number(node: Node) -> None:
    """GKE's names are those of the device files: the caller says which file a GPU has, and without that nobody holds it."""
    node.service.pods = [a_pod("train-0", a_container(gpu=["nvidia2/vgpu0"])), a_pod("train-1", a_container(gpu=["nvidia3/gi9"]))]
    assert node.holders(GPU, GpuNumbers(index=0, minor=2)) == (TRAINER,)
    assert node.holders(MIG, GpuNumbers(index=0, minor=3, instance=9)) == (
        Holder(namespace="research", pod="train-1", container="trainer"),
    )
    assert node.holders(GPU, GpuNumbers(index=2, minor=0)) == node.holders(GPU) == ()


def test_a_claimed_device_is_resolved(node: Node) -> None:
    """Under dynamic resource allocation there are pool and device; what resolves to no UUID is held by nobody that is known."""
    node.service.pods = [a_pod("train-0", a_container(claims=[CLAIM, ("gpu.nvidia.com", "node-7", "gpu-1")]))]
    assert node.holders() == ()
    node.uuids[CLAIM] = GPU
    assert (node.holders(), node.holders(OTHER_GPU)) == ((TRAINER,), ())


def test_a_gpu_that_is_held_and_not_used_is_idle(node: Node) -> None:
    """A job that holds a GPU with no process on it is invisible to NVML, and known here."""
    node.service.pods = [a_pod("train-0", a_container(gpu=[GPU, OTHER_GPU]))]
    node.watch.look()
    assert node.watch.idle([GPU, OTHER_GPU, MIG], busy=[OTHER_GPU]) == {GPU: (TRAINER,)}


def test_one_pod_and_what_there_is_to_give(node: Node) -> None:
    """The other two calls of the API."""
    node.service.pods = [a_pod("train-0", a_container(gpu=[GPU]))]
    node.service.devices = [{"resource_name": "nvidia.com/gpu", "device_ids": [GPU, OTHER_GPU]}]
    pod = node.kubelet.pod(namespace="research", name="train-0")
    assert [(pod.name, list(pod.containers[0].devices[0].device_ids))] == [("train-0", [GPU])]
    assert [list(devices.device_ids) for devices in node.kubelet.allocatable().devices] == [[GPU, OTHER_GPU]]
    with pytest.raises(KubeletError) as caught:
        node.kubelet.pod(namespace="research", name="gone")
    assert caught.value.code == "NOT_FOUND"
    assert node.service.calls == ["Get", "GetAllocatableResources", "Get"]


def test_a_kubelet_that_fails_makes_holders_unknown(node: Node) -> None:
    """What it said before may have changed: nobody is named, it is said once, and the next answer counts again."""
    node.service.pods = [a_pod("train-0", a_container(gpu=[GPU]))]
    assert node.holders() == (TRAINER,)
    node.service.failure = grpc.StatusCode.RESOURCE_EXHAUSTED
    with capture_logs() as logs:
        assert [node.holders(), node.holders()] == [None, None]
        assert node.watch.idle([GPU], busy=[]) == {}
    assert [entry["event"] for entry in logs] == ["kubelet does not answer"]
    node.service.failure = None
    assert node.holders() == (TRAINER,)


def test_a_large_node_fits_into_one_answer(node: Node) -> None:
    """Five megabytes, more than gRPC takes unless told otherwise."""
    node.service.pods = [a_pod(f"pod-{number}-{'x' * 2000}", a_container(gpu=[GPU])) for number in range(2500)]
    assert len(node.holders() or ()) == 2500


def test_a_node_without_a_kubelet_has_no_holders(tmp_path: Path) -> None:
    """A missing socket is an answer like any failure."""
    node = Node(tmp_path)
    with pytest.raises(KubeletError) as caught:
        node.kubelet.pods()
    assert caught.value.code == "UNAVAILABLE"
    assert node.holders() is None
    node.watch.stop()


def test_the_watch_follows_a_kubelet_that_restarts(tmp_path: Path) -> None:
    """It makes a new socket at the same path; the watch's thread asks on and finds it."""
    node = Node(tmp_path)
    node.service.pods = [a_pod("train-0", a_container(gpu=[GPU]))]
    with serving(node.service, node.socket):
        node.watch.start()
        until(lambda: node.watch.holders(GPU) == (TRAINER,))
    until(lambda: node.watch.holders(GPU) is None)
    with serving(node.service, node.socket):
        until(lambda: node.watch.holders(GPU) == (TRAINER,))
        node.watch.stop()
    calls = len(node.service.calls)
    time.sleep(0.05)
    assert len(node.service.calls) == calls
