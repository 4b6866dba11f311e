"""What the options name is what the agent asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.builders import GPU, ONE_GPU, ProcTree, SimulatedNode
from tests.unit.agent.pod_resources_api import KubeletService, a_container, a_pod, serving
from tests.unit.agent.test_kubelet import until

from peakgate.agent.errors import UsageError
from peakgate.agent.options import Options
from peakgate.agent.pod_devices import Holder
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.sources import attribution_of, pod_watch_of

LISTED = [ProcessId(7, 100), ProcessId(8, 0)]


def options(folder: Path, **changes: object) -> Options:
    """Options whose folders and sockets are all below this one."""
    places = {
        "jobs_folder": folder / "jobs",
        "jobstats_folder": folder / "gpustat",
        "kubelet_socket": folder / "pod-resources/kubelet.sock",
    }
    values = {"server": "unix:none", "node": "node-7", "cluster": "alpha", "spool": folder / "agent.db"}
    return Options(**values | places | changes)  # type: ignore[arg-type]  # each test changes what it is about


def a_proc(folder: Path) -> ProcFolder:
    """A /proc with one process, of no job."""
    tree = ProcTree(folder / "proc")
    tree.add(7)
    return ProcFolder(root=tree.root)


@pytest.mark.parametrize(("changes", "want"), [({}, "402"), ({"jobstats_folder": None}, "")])
def test_jobstats_folder_is_read_unless_it_is_switched_off(tmp_path: Path, changes: dict[str, object], want: str) -> None:
    """The default place."""
    attribution = attribution_of(options(tmp_path, **changes), proc=a_proc(tmp_path))
    (tmp_path / "gpustat").mkdir()
    (tmp_path / "gpustat" / GPU).write_text("402 1000")
    assert attribution.owner_of(gpu_uuid=GPU, process=LISTED[0]).job == want


def test_dcgm_exporters_folder_is_read_when_it_is_named(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """Its files are named by the place in NVML's order, which NVML itself is asked for."""
    node = SimulatedNode(simulated, ONE_GPU)
    (tmp_path / "mapping").mkdir()
    (tmp_path / "mapping" / "0").write_text("402\n")
    attribution = attribution_of(options(tmp_path, dcgm_folder=tmp_path / "mapping", gpu_numbers="index"), proc=a_proc(tmp_path))
    assert attribution.owner_of(gpu_uuid=GPU, process=LISTED[0]).job == "402"
    node.nvml.stop()


@pytest.mark.parametrize(("simulate", "want"), [(None, True), ("demo", False)])
def test_the_pids_are_checked_unless_they_are_made_up(tmp_path: Path, simulate: str | None, want: bool) -> None:
    """A scenario lists pids that no machine has."""
    attribution = attribution_of(options(tmp_path, simulate=simulate), proc=a_proc(tmp_path))
    for _ in range(2):
        attribution.owners_on(GPU, LISTED)
    assert bool(attribution.refused) is want


def test_a_kubelet_is_asked_where_there_is_one(tmp_path: Path) -> None:
    """Found by its folder, also when its socket comes later; switched off, or without the folder, there is no watch."""
    assert pod_watch_of(options(tmp_path)) is None
    (tmp_path / "pod-resources").mkdir()
    assert pod_watch_of(options(tmp_path, kubelet_socket=None)) is None
    watch = pod_watch_of(options(tmp_path))
    assert watch
    watch._period_seconds = 0.05
    watch.look()
    assert watch.holders(GPU) is None
    service = KubeletService()
    service.pods = [a_pod("train-0", a_container(gpu=[GPU]))]
    with serving(service, tmp_path / "pod-resources/kubelet.sock"):
        watch.start()
        until(lambda: watch.holders(GPU) == (Holder(namespace="research", pod="train-0", container="trainer"),))
        watch.stop()


def test_a_word_that_is_no_number_of_a_gpu_is_refused(tmp_path: Path) -> None:
    """The words are named."""
    with pytest.raises(UsageError, match="auto, index, minor"):
        options(tmp_path, gpu_numbers="ordinal")
