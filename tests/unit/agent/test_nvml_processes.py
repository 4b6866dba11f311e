"""Three lists of processes as one."""

from __future__ import annotations

from tests.unit.agent.builders import GIB, GPU, ONE_GPU, SimulatedNode

from peakgate.agent.samples import GpuProcess, Kind, ProcessSample, Sample
from peakgate.agent.simulated.library import SimulatedNvml

GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses_v3"
MPS = "nvmlDeviceGetMPSComputeRunningProcesses_v3"


def last_list(samples: list[Sample]) -> set[GpuProcess]:
    """The newest list of the GPU."""
    return set(next(sample for sample in reversed(samples) if isinstance(sample, ProcessSample) and sample.gpu.uuid == GPU).processes)


def test_each_pid_is_one_process_with_all_its_kinds(simulated: SimulatedNvml) -> None:
    """A process that computes and draws is in two lists, and its memory is counted once."""
    scenario = (
        f"{ONE_GPU}process 0 pid=7 memory=0:2G kind=compute+graphics\nprocess 0 pid=8 memory=0:1G kind=graphics\n"
        "process 0 pid=9 memory=0:3G kind=mps\nprocess 0 pid=10 memory=0:NA kind=compute+mps\n"
    )
    assert last_list(SimulatedNode(simulated, scenario).run(3)) == {
        GpuProcess(pid=7, used_bytes=2 * GIB, kinds=Kind.COMPUTE | Kind.GRAPHICS),
        GpuProcess(pid=8, used_bytes=GIB, kinds=Kind.GRAPHICS),
        GpuProcess(pid=9, used_bytes=3 * GIB, kinds=Kind.MPS),
        GpuProcess(pid=10, used_bytes=None, kinds=Kind.COMPUTE | Kind.MPS),
    }


def test_quiet_lists_are_read_now_and_then(simulated: SimulatedNvml) -> None:
    """An empty graphics list costs a call in ten lists, not one in each."""
    node = SimulatedNode(simulated, f"{ONE_GPU}process 0 pid=7 memory=0:1G\n")
    node.run(1)
    simulated.calls()
    node.run(61)
    assert 4 <= simulated.calls(GRAPHICS) <= 9


def test_an_mps_client_is_seen_when_it_takes_memory(simulated: SimulatedNvml) -> None:
    """A rise of the device's memory is looked into in all lists at once, and a list that has somebody in it is read each time."""
    node = SimulatedNode(simulated, f"{ONE_GPU}process 0 pid=9 memory=13.1:3G,20:4G kind=mps\n")
    samples = node.run(21)
    seen = [sample.clock or 0.0 for sample in samples if isinstance(sample, ProcessSample) and sample.processes]
    assert 13.1 <= seen[0] < 13.8
    assert last_list(samples) == {GpuProcess(pid=9, used_bytes=4 * GIB, kinds=Kind.MPS)}


def test_a_failed_list_is_no_list(simulated: SimulatedNvml) -> None:
    """When the list of MPS clients cannot be read, nothing is said of the processes: its clients have not ended."""
    scenario = f"{ONE_GPU}process 0 pid=7 memory=0:1G\nprocess 0 pid=9 memory=0:3G kind=mps\nerror 999 function={MPS} from=3 until=8\n"
    samples = SimulatedNode(simulated, scenario).run(12)
    assert [sample for sample in samples if isinstance(sample, ProcessSample) and 3 <= (sample.clock or 0) < 8] == []
    assert len(last_list(samples)) == 2
