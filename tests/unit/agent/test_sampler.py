"""The sampler over the real pynvml over the simulated library."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GIB, GPU, H100, ONE_GPU, OTHER_GPU, START, TWO_GPUS, SimulatedNode

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_codes import GPU_IS_LOST, LIB_RM_VERSION_MISMATCH, NOT_FOUND
from peakgate.agent.samples import DeviceSample, Gpu, GpuGone, ProcessSample, ReadFailed, Sample
from peakgate.agent.simulated.library import SimulatedNvml

MIG = "MIG-00000000-0000-4000-8000-00000000000a"


def peaks(samples: list[Sample]) -> dict[tuple[str, int], int]:
    """The highest figure by (GPU, pid)."""
    found: dict[tuple[str, int], int] = {}
    for sample in samples:
        for process in sample.processes if isinstance(sample, ProcessSample) else ():
            key = (sample.gpu.uuid, process.pid)
            found[key] = max(found.get(key, 0), process.used_bytes or 0)
    return found


def times(samples: list[Sample], kind: type[Sample], gpu: str = GPU) -> list[float]:
    """Scenario seconds of the samples of one kind."""
    return [sample.time - START for sample in samples if isinstance(sample, kind) and sample.gpu.uuid == gpu]


def test_peaks_are_those_of_the_scenario(simulated: SimulatedNvml) -> None:
    """Memory per process and per GPU comes out as scripted, without what the driver reserves."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}process 0 pid=7 memory=0:520M,3:52G,9:end\nprocess 1 pid=8 memory=0:3G\n")
    samples = node.run(12)
    assert peaks(samples) == {(GPU, 7): 52 * GIB, (OTHER_GPU, 8): 3 * GIB}
    assert max(sample.used_bytes for sample in samples if isinstance(sample, DeviceSample)) == 52 * GIB
    assert {sample.gpu for sample in samples if sample.gpu.uuid == GPU} == {
        Gpu(uuid=GPU, name="NVIDIA H100 80GB HBM3", total_bytes=81559 << 20, reserved_bytes=480 << 20)
    }


def test_two_clocks_with_jitter(simulated: SimulatedNvml) -> None:
    """Device memory is read about twice a second, process lists about once; no two gaps are the same."""
    samples = SimulatedNode(simulated, ONE_GPU).run(60)
    for kind, period in ((DeviceSample, 0.5), (ProcessSample, 1.0)):
        gaps = [later - earlier for earlier, later in pairwise(times(samples, kind))]
        assert len(gaps) == pytest.approx(60 / period, rel=0.1)
        assert all(0.8 * period - 1e-5 <= gap <= 1.2 * period + 1e-5 for gap in gaps)
        assert len({round(gap, 6) for gap in gaps}) > len(gaps) / 2


def spikes(step_seconds: float, spike_seconds: float, phase_seconds: float, count: int) -> str:
    """Processes that each are high once, at the same phase of every step: a memory that is given back."""
    lines = [
        f"process 0 pid=7 memory={k * step_seconds + phase_seconds}:60G,{k * step_seconds + phase_seconds + spike_seconds}:end"
        for k in range(count)
    ]
    return ONE_GPU + "\n".join(lines) + "\n"


def first_hit(node: SimulatedNode, until: float) -> float | None:
    """The scenario second of the first list with a process in it."""
    while node.now <= until:
        node.simulated.set_time(node.now)
        if any(isinstance(sample, ProcessSample) and sample.processes for sample in node.sampler.poll()):
            return node.now
        node.now += max(node.sampler.wait_seconds(), 1e-6)
    return None


def test_jitter_catches_a_spike_that_a_fixed_period_misses(simulated: SimulatedNvml) -> None:
    """A spike of 0.1 s in every step of 2 s, out of phase with the clock: never seen without jitter, by each of 100 seeds with it."""
    scenario = spikes(2.0, 0.1, 0.7, 240)
    fixed: Callable[[float, float], float] = lambda low, high: (low + high) / 2  # noqa: E731 (a stand-in for random.uniform)
    assert first_hit(SimulatedNode(simulated, scenario, uniform=fixed), 480) is None
    hits = [first_hit(SimulatedNode(simulated, scenario, uniform=Random(seed).uniform), 480) for seed in range(100)]
    assert [seed for seed, hit in enumerate(hits) if hit is None] == []


def test_a_new_height_calls_for_a_process_list_at_once(simulated: SimulatedNvml) -> None:
    """A rise of the whole GPU's memory is looked into at the same moment, not at the next list."""
    samples = SimulatedNode(simulated, f"{ONE_GPU}process 0 pid=7 memory=0:1G,10.1:70G,10.75:1G\n").run(20)
    assert peaks(samples) == {(GPU, 7): 70 * GIB}


def test_a_failed_read_is_a_gap(simulated: SimulatedNvml) -> None:
    """An unknown error of one call is reported as a gap, logged once, and over when it is over."""
    error = "error 999 function=nvmlDeviceGetComputeRunningProcesses_v3 gpu=0 from=3 until=8\n"
    with capture_logs() as logs:
        samples = SimulatedNode(simulated, f"{TWO_GPUS}process 0 pid=7 memory=0:1G\n{error}").run(12)
    assert all(3 <= time < 8 for time in times(samples, ReadFailed))
    assert len(times(samples, ReadFailed)) >= 4
    assert max(times(samples, ProcessSample)) > 10
    assert times(samples, ReadFailed, OTHER_GPU) == []
    assert [entry["code"] for entry in logs if entry["event"] == "nvml call failed"] == [999]


def test_a_lost_gpu_does_not_blind_the_others(simulated: SimulatedNvml) -> None:
    """It is said to be gone once; the other GPU is read on; when it is back it is found."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}error {GPU_IS_LOST} gpu=0 from=5 until=100\n")
    samples = node.run(200)
    assert len(times(samples, GpuGone)) == 1
    assert [time for time in times(samples, ProcessSample) if 6 < time < 100] == []
    assert max(times(samples, ProcessSample)) > 195
    assert len(times(samples, ProcessSample, OTHER_GPU)) > 180


def test_a_lost_gpu_at_the_start_does_not_hide_the_others(simulated: SimulatedNvml) -> None:
    """The list of GPUs is made of those that answer."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}error {GPU_IS_LOST} gpu=0\n")
    node.run(1)
    assert set(node.sampler.gpus) == {OTHER_GPU}


def test_a_failed_look_around_forgets_nothing(simulated: SimulatedNvml) -> None:
    """A transient error while the GPUs are listed again is not the loss of a GPU."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}error 999 function=nvmlDeviceGetUUID gpu=0 from=30 until=300\n")
    samples = node.run(200)
    assert times(samples, GpuGone) == []
    assert max(times(samples, ProcessSample)) > 195


def test_memory_that_is_not_available_is_none(simulated: SimulatedNvml) -> None:
    """2^64-1 never becomes a figure; the device's memory is still known."""
    samples = SimulatedNode(simulated, f"{ONE_GPU}process 0 pid=7 memory=0:NA\nprocess 0 pid=0 memory=0:11G\n").run(3)
    used = {process.used_bytes for sample in samples if isinstance(sample, ProcessSample) for process in sample.processes}
    assert used == {None}
    assert {sample.used_bytes for sample in samples if isinstance(sample, DeviceSample)} == {11 * GIB}


def test_mig_instances_are_the_gpus(simulated: SimulatedNvml) -> None:
    """In MIG mode each instance has its own memory and processes; the parent is not read."""
    scenario = f"{ONE_GPU}mig 0 uuid={MIG} total=40448M gi=1 ci=0\nprocess 0 pid=7 gi=1 ci=0 memory=0:18G\n"
    assert peaks(SimulatedNode(simulated, scenario).run(3)) == {(MIG, 7): 18 * GIB}


def test_processes_that_appear_between_the_two_calls_are_no_error(simulated: SimulatedNvml) -> None:
    """pynvml leaves room for a few; a burst beyond it is one gap, not an end."""
    few = SimulatedNode(simulated, f"{ONE_GPU}process 0 pid=7 memory=0:1G\nlate_processes 2\n").run(2)
    assert (GPU, 7) in peaks(few)
    many = SimulatedNode(simulated, f"{ONE_GPU}process 0 pid=7 memory=0:1G\nlate_processes 50\n").run(2)
    assert len(times(many, ReadFailed)) >= 2
    assert times(many, GpuGone) == []


def test_a_function_that_is_not_supported_is_not_asked_again(simulated: SimulatedNvml) -> None:
    """An integrated GPU cannot say its memory: it is asked once, and watched no more."""
    lists = ("Compute", "Graphics", "MPSCompute")
    functions = ("MemoryInfo_v2", *(f"{name}RunningProcesses_v3" for name in lists), "AccountingMode")
    error = "".join(f"error 3 function=nvmlDeviceGet{name}\n" for name in functions)
    node = SimulatedNode(simulated, ONE_GPU + error)
    assert [sample for sample in node.run(5) if not isinstance(sample, ReadFailed)] == []
    simulated.calls()
    node.run(20)
    assert simulated.calls() == 0


def test_an_old_driver_is_asked_the_old_way(simulated: SimulatedNvml) -> None:
    """Without the second version of the memory call the first one answers, as good as it can."""
    scenario = f"{ONE_GPU}process 0 pid=7 memory=0:1G\nerror 13 function=nvmlDeviceGetMemoryInfo_v2\n"
    samples = SimulatedNode(simulated, scenario).run(2)
    assert {sample.used_bytes for sample in samples if isinstance(sample, DeviceSample)} == {GIB + (480 << 20)}


def test_a_replaced_driver_ends_the_watch(simulated: SimulatedNvml) -> None:
    """The library in this process no longer fits: only a new process can go on."""
    node = SimulatedNode(simulated, f"{ONE_GPU}error {LIB_RM_VERSION_MISMATCH} from=4\n")
    with pytest.raises(NvmlError) as caught:
        node.run(20)
    assert caught.value.code == LIB_RM_VERSION_MISMATCH
    assert node.now >= 4


def test_a_gpu_that_is_not_known_is_an_error_and_no_crash(simulated: SimulatedNvml) -> None:
    """An unset handle never reaches the library, which would crash on it."""
    node = SimulatedNode(simulated, ONE_GPU)
    with pytest.raises(NvmlError) as caught:
        node.nvml.used_bytes(Gpu(uuid="GPU-unknown", name="", total_bytes=0))
    assert caught.value.code == NOT_FOUND


def test_the_calls_stay_in_their_budget(simulated: SimulatedNvml) -> None:
    """Eight GPUs cost about 32 calls a second: 16 memory readings and 8 lists of two calls each."""
    gpus = "".join(f"gpu {k} uuid=GPU-{k} {H100}\nprocess {k} pid={100 + k} memory=0:1G\n" for k in range(8))
    node = SimulatedNode(simulated, gpus)
    node.run(1)
    simulated.calls()
    node.run(51)
    assert simulated.calls() < 50 * 36


def test_errors_are_counted_by_function_and_code(simulated: SimulatedNvml) -> None:
    """The statistics behind the metrics name what failed and how often."""
    node = SimulatedNode(simulated, f"{ONE_GPU}error 999 function=nvmlDeviceGetMemoryInfo_v2 from=1 until=3\n")
    node.run(5)
    count = node.nvml.statistics.errors["nvmlDeviceGetMemoryInfo_v2", 999]
    assert 3 <= count <= 5
    assert node.nvml.statistics.calls["nvmlDeviceGetMemoryInfo_v2"] > count
