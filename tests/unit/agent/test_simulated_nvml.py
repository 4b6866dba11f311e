"""What the simulated library answers, asked through the real pynvml."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pynvml
import pytest
from tests.unit.agent.builders import GIB, GPU, H100, ONE_GPU, START, TWO_GPUS

from peakgate.agent.simulated.library import SimulatedNvml

Load = Callable[..., Any]
MIG = (
    f"{ONE_GPU}mig 0 uuid=MIG-a total=40G gi=1 ci=0\nmig 0 uuid=MIG-b total=40G gi=2 ci=0 from=10 until=20\n"
    "process 0 pid=7 gi=1 ci=0 memory=0:18G\nprocess 0 pid=8 gi=2 ci=0 memory=11:30G,19:end\n"
)
ACCOUNTED = ONE_GPU.replace("reserved", "accounting=on reserved") + f"epoch {START}\n"


@pytest.fixture
def load(simulated: SimulatedNvml) -> Iterator[Load]:
    """Begins a scenario at a second of the virtual clock, opens NVML and returns the handle of GPU 0."""

    def begin(scenario: str, seconds: float = 0.0) -> Any:
        simulated.load(scenario)
        simulated.set_time(seconds)
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetHandleByIndex(0)

    yield begin
    simulated.set_time(0)
    pynvml.nvmlShutdown()


def code_of(function: Callable[..., object], *arguments: object) -> int:
    """NVML's code for a call: 0 when it works."""
    try:
        function(*arguments)
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def rows(processes: list[Any]) -> list[tuple[int, int | None]]:
    """(pid, memory) of a process list, None for a figure that is not available."""
    return [(row.pid, row.usedGpuMemory) for row in processes]


def test_a_gpu_is_found_by_each_of_its_names(load: Load) -> None:
    """Index, UUID and bus lead to the same GPU; the minor number may differ from the index."""
    load(f"gpu 1 uuid=GPU-b total=1G\ngpu 0 uuid={GPU} minor=3 pci=1:af:0 {H100}\n")
    for handle in (
        pynvml.nvmlDeviceGetHandleByIndex(0),
        pynvml.nvmlDeviceGetHandleByUUID(GPU),
        pynvml.nvmlDeviceGetHandleByPciBusId(b"00000001:AF:00.0"),
    ):
        assert pynvml.nvmlDeviceGetUUID(handle) == GPU
        assert (pynvml.nvmlDeviceGetIndex(handle), pynvml.nvmlDeviceGetMinorNumber(handle)) == (0, 3)
        assert pynvml.nvmlDeviceGetPciInfo(handle).busId == "00000001:AF:00.0"
    assert code_of(pynvml.nvmlDeviceGetHandleByUUID, "GPU-none") == pynvml.NVML_ERROR_NOT_FOUND
    assert code_of(pynvml.nvmlDeviceGetHandleByIndex, 2) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlDeviceGetHandleByPciBusId, b"0:1:0.0") == pynvml.NVML_ERROR_NOT_FOUND


def test_memory_of_both_versions(load: Load, simulated: SimulatedNvml) -> None:
    """total = reserved + used + free in version 2; `used` of version 1 has the reserved part in it. pid 0 is in no list."""
    handle = load(f"{ONE_GPU}process 0 pid=7 memory=0:10G,5:20G\nprocess 0 pid=0 memory=0:1G\n", 4)
    for second, want in ((4, 11 * GIB), (5, 21 * GIB)):
        simulated.set_time(second)
        new = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        old = pynvml.nvmlDeviceGetMemoryInfo(handle)
        assert new.used == want
        assert new.total == new.reserved + new.used + new.free
        assert (old.used, old.free) == (new.used + new.reserved, new.free)
    assert rows(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)) == [(7, 20 * GIB)]


def test_the_three_lists_in_both_versions(load: Load) -> None:
    """A process may be in two lists with the same memory, which the device counts once; a figure may not be available."""
    handle = load(
        f"{ONE_GPU}process 0 pid=7 kind=compute+graphics memory=0:2G\nprocess 0 pid=8 kind=mps memory=0:NA\n"
        "process 0 pid=9 kind=graphics memory=0:1G\n"
    )
    lists = {
        "Compute": [(7, 2 * GIB)],
        "Graphics": [(7, 2 * GIB), (9, GIB)],
        "MPSCompute": [(8, None)],
    }
    for kind, want in lists.items():
        for version in ("_v2", "_v3"):
            assert rows(getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses{version}")(handle)) == want
    assert pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used == 3 * GIB


def test_processes_that_appear_between_size_and_fetch(load: Load) -> None:
    """pynvml makes room for twice the number and five; one more is INSUFFICIENT_SIZE, and the race is over when it was scripted once."""
    handle = load(f"{ONE_GPU}process 0 pid=7 memory=0:2G\nlate_processes 7 times=1\n")
    calls = [code_of(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) for _ in range(2)]
    assert calls == [pynvml.NVML_ERROR_INSUFFICIENT_SIZE, 0]


def test_a_pid_is_used_again(load: Load, simulated: SimulatedNvml) -> None:
    """Two lines with one pid: never both at a time."""
    handle = load(f"{ONE_GPU}process 0 pid=7 memory=0:2G,5:end\nprocess 0 pid=7 memory=8:9G\n")
    seen = []
    for second in (0, 5, 8):
        simulated.set_time(second)
        seen.append(rows(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)))
    assert seen == [[(7, 2 * GIB)], [], [(7, 9 * GIB)]]


def test_mig_instances_appear_and_vanish(load: Load, simulated: SimulatedNvml) -> None:
    """A slot without an instance is NOT_FOUND, the handle of one that is gone INVALID_ARGUMENT, and memory is its own."""
    parent = load(f"privileged yes\n{MIG}", 5)
    assert pynvml.nvmlDeviceGetMigMode(parent) == [1, 1]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(parent) == 7
    assert code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, 1) == pynvml.NVML_ERROR_NOT_FOUND
    simulated.set_time(15)
    instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 1)
    assert pynvml.nvmlDeviceGetUUID(instance) == "MIG-b"
    assert pynvml.nvmlDeviceIsMigDeviceHandle(instance)
    assert (pynvml.nvmlDeviceGetGpuInstanceId(instance), pynvml.nvmlDeviceGetComputeInstanceId(instance)) == (2, 0)
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance)) == GPU
    assert rows(pynvml.nvmlDeviceGetComputeRunningProcesses(instance)) == [(8, 30 * GIB)]
    assert pynvml.nvmlDeviceGetMemoryInfo(instance, version=pynvml.nvmlMemory_v2).used == 30 * GIB
    assert rows(pynvml.nvmlDeviceGetComputeRunningProcesses(parent)) == [(7, 18 * GIB), (8, 30 * GIB)]
    simulated.set_time(20)
    assert code_of(pynvml.nvmlDeviceGetMemoryInfo, instance) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlDeviceGetHandleByUUID, "MIG-b") == pynvml.NVML_ERROR_NOT_FOUND


def test_mig_mode_without_instances_and_without_mig(load: Load) -> None:
    """A GPU may be in MIG mode with no instance yet, and an older one does not know the mode."""
    handle = load(f"{ONE_GPU.strip()} mig=on\ngpu 1 uuid=GPU-t4 total=15G mig=unsupported\n")
    assert pynvml.nvmlDeviceGetMigMode(handle) == [1, 1]
    assert code_of(pynvml.nvmlDeviceGetMigMode, pynvml.nvmlDeviceGetHandleByIndex(1)) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_the_lists_of_a_whole_mig_gpu_are_roots(load: Load) -> None:
    """Anybody may ask an instance; the sum of all asks for root (nvml.h)."""
    parent = load(f"privileged no\n{MIG}", 5)
    assert code_of(pynvml.nvmlDeviceGetComputeRunningProcesses, parent) == pynvml.NVML_ERROR_NO_PERMISSION
    assert rows(pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0))) == [(7, 18 * GIB)]


def test_accounting_keeps_the_figures_of_a_process(load: Load, simulated: SimulatedNvml) -> None:
    """Peak, wall time of the start, time only after the end, utilization; in both versions of the call."""
    handle = load(f"{ACCOUNTED}process 0 pid=7 memory=10:1G,12:60G,13:3G,20:end sm_utilization=50\n", 15)
    running = pynvml.nvmlDeviceGetAccountingStats(handle, 7)
    assert (running.maxMemoryUsage, running.isRunning, running.time) == (60 * GIB, 1, 0)
    assert running.startTime == (START + 10) * 1e6
    simulated.set_time(100)
    ended, detailed = pynvml.nvmlDeviceGetAccountingStats(handle, 7), pynvml.nvmlDeviceGetAccountingStats_v2(handle, 7)
    assert (ended.maxMemoryUsage, ended.isRunning, ended.time, ended.gpuUtilization) == (60 * GIB, 0, 10_000, 50)
    assert (detailed.pid, detailed.maxMemoryUsage, detailed.sampleCount, detailed.sumGpuUtil) == (7, 60 * GIB, 10, 50_000)
    assert pynvml.nvmlDeviceGetAccountingPids(handle) == [7]
    assert code_of(pynvml.nvmlDeviceGetAccountingStats, handle, 8) == pynvml.NVML_ERROR_NOT_FOUND


def test_accounting_of_a_pid_that_runs_again_is_that_of_the_one_that_ended(load: Load, simulated: SimulatedNvml) -> None:
    """The driver looks among the ended first, so that a row has to be checked by its start; once the second ends, its row wins."""
    handle = load(f"{ACCOUNTED}process 0 pid=7 memory=0:60G,5:end\nprocess 0 pid=7 memory=10:9G,20:end\n")
    seen = []
    for second in (15, 21):
        simulated.set_time(second)
        stats = pynvml.nvmlDeviceGetAccountingStats(handle, 7)
        seen.append((stats.maxMemoryUsage // GIB, stats.startTime / 1e6 - START))
    assert seen == [(60, 0), (9, 10)]
    assert pynvml.nvmlDeviceGetAccountingPids(handle) == [7]


def test_accounting_without_a_figure_is_not_available(load: Load) -> None:
    """A process whose memory never could be read has no peak, rather than 0."""
    handle = load(f"{ACCOUNTED}process 0 pid=7 memory=0:NA\n", 3)
    assert pynvml.nvmlDeviceGetAccountingStats_v2(handle, 7).maxMemoryUsage == 2**64 - 1


def test_accounting_is_lost_with_the_driver(load: Load, simulated: SimulatedNvml) -> None:
    """Off at second 30, on again at 40: only what begins after that has a row."""
    accounting = ONE_GPU.replace("reserved", "accounting=0:on,30:off,40:on reserved")
    handle = load(f"{accounting}process 0 pid=7 memory=0:60G\nprocess 0 pid=8 memory=41:9G\n", 35)
    assert pynvml.nvmlDeviceGetAccountingMode(handle) == 0
    assert code_of(pynvml.nvmlDeviceGetAccountingStats, handle, 7) == pynvml.NVML_ERROR_NOT_SUPPORTED
    simulated.set_time(50)
    assert pynvml.nvmlDeviceGetAccountingPids(handle) == [8]


@pytest.mark.parametrize(
    ("scenario", "want"),
    [
        (f"privileged no\n{ONE_GPU}", pynvml.NVML_ERROR_NO_PERMISSION),
        (f"privileged yes\n{ONE_GPU.strip()} accounting=unsupported\n", pynvml.NVML_ERROR_NOT_SUPPORTED),
        (f"privileged yes\n{MIG}", pynvml.NVML_ERROR_NOT_SUPPORTED),
    ],
)
def test_accounting_that_cannot_be_switched_on(load: Load, scenario: str, want: int) -> None:
    """Not without root, not where it does not exist, not in MIG mode."""
    handle = load(scenario)
    assert code_of(pynvml.nvmlDeviceSetAccountingMode, handle, pynvml.NVML_FEATURE_ENABLED) == want
    assert code_of(pynvml.nvmlDeviceGetAccountingStats, handle, 7) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_root_switches_accounting_and_clears_it(load: Load, simulated: SimulatedNvml) -> None:
    """On, a process ends, its row is cleared; switched off, nothing is left."""
    handle = load(f"privileged yes\n{ONE_GPU}process 0 pid=7 memory=5:1G,8:end\nprocess 0 pid=8 memory=5:1G\n", 1)
    pynvml.nvmlDeviceSetAccountingMode(handle, pynvml.NVML_FEATURE_ENABLED)
    assert (pynvml.nvmlDeviceGetAccountingMode(handle), pynvml.nvmlDeviceGetAccountingBufferSize(handle)) == (1, 4000)
    simulated.set_time(10)
    assert pynvml.nvmlDeviceGetAccountingPids(handle) == [7, 8]
    pynvml.nvmlDeviceClearAccountingPids(handle)
    assert pynvml.nvmlDeviceGetAccountingPids(handle) == [8]
    pynvml.nvmlDeviceSetAccountingMode(handle, pynvml.NVML_FEATURE_DISABLED)
    pynvml.nvmlDeviceSetAccountingMode(handle, pynvml.NVML_FEATURE_ENABLED)
    assert pynvml.nvmlDeviceGetAccountingPids(handle) == []


def test_an_event_is_heard_by_those_who_registered_before(load: Load, simulated: SimulatedNvml) -> None:
    """Two sets each hear of an event once; a set of another GPU, of another type or of a later time does not."""
    handle = load(f"{TWO_GPUS}event 0 at=5 data=79\nevent 0 at=6 type=0x100\n", 1)
    sets = [pynvml.nvmlEventSetCreate() for _ in range(5)]
    xid, mig = pynvml.nvmlEventTypeXidCriticalError, pynvml.nvmlEventMigConfigChange
    for events, device, types in ((0, 0, xid | mig), (1, 0, xid), (2, 0, mig), (3, 1, xid | mig)):
        pynvml.nvmlDeviceRegisterEvents(pynvml.nvmlDeviceGetHandleByIndex(device), types, sets[events])
    simulated.set_time(7)
    pynvml.nvmlDeviceRegisterEvents(handle, xid, sets[4])
    heard = []
    for events in sets:
        while code_of(lambda events=events: heard.append(pynvml.nvmlEventSetWait_v2(events, 0))) == 0:
            heard[-1] = (sets.index(events), heard[-1].eventType, heard[-1].eventData)
        pynvml.nvmlEventSetFree(events)
    assert heard == [(0, xid, 79), (0, mig, 0), (1, xid, 79), (2, mig, 0)]
    assert code_of(pynvml.nvmlEventSetWait_v2, sets[0], 0) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_events_that_a_gpu_does_not_have(load: Load) -> None:
    """An unknown type is refused, and so is the handle of a MIG instance."""
    handle = load(MIG)
    assert pynvml.nvmlDeviceGetSupportedEventTypes(handle) == 0x108
    events = pynvml.nvmlEventSetCreate()
    assert code_of(pynvml.nvmlDeviceRegisterEvents, handle, 0x10, events) == pynvml.NVML_ERROR_NOT_SUPPORTED
    instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, 0)
    assert code_of(pynvml.nvmlDeviceRegisterEvents, instance, 0x8, events) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_sensors_show_the_script_and_nothing_else(load: Load, simulated: SimulatedNvml) -> None:
    """Each figure at its time; what the scenario does not give, or gives as NA, is not supported."""
    sensors = "gpu_utilization=0:10,5:97 memory_utilization=41 temperature=0:40,5:63 power=611.5 power_limit=700 persistence=on fan=NA"
    handle = load(f"{ONE_GPU.strip()} {sensors}\ngpu 1 uuid=GPU-b total=1G\n", 6)
    assert pynvml.nvmlDeviceGetUtilizationRates(handle).gpu == 97
    assert pynvml.nvmlDeviceGetUtilizationRates(handle).memory == 41
    assert pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU) == 63
    assert (pynvml.nvmlDeviceGetPowerUsage(handle), pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)) == (611_500, 700_000)
    assert pynvml.nvmlDeviceGetPersistenceMode(handle) == 1
    simulated.set_time(1)
    assert pynvml.nvmlDeviceGetUtilizationRates(handle).gpu == 10
    other = pynvml.nvmlDeviceGetHandleByIndex(1)
    for function, device in ((pynvml.nvmlDeviceGetFanSpeed, handle), (pynvml.nvmlDeviceGetPowerUsage, other)):
        assert code_of(function, device) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_process_utilization_is_new_once_a_second(load: Load, simulated: SimulatedNvml) -> None:
    """A sample that was seen is NOT_FOUND until the next second; MIG has none."""
    handle = load(f"epoch {START}\n{ONE_GPU}process 0 pid=7 memory=0:1G sm_utilization=0:88 memory_utilization=12\n", 3.2)
    sample = pynvml.nvmlDeviceGetProcessUtilization(handle, 0)[0]
    assert (sample.pid, sample.smUtil, sample.memUtil, sample.timeStamp) == (7, 88, 12, (START + 3) * 1e6)
    assert code_of(pynvml.nvmlDeviceGetProcessUtilization, handle, sample.timeStamp) == pynvml.NVML_ERROR_NOT_FOUND
    simulated.set_time(4)
    assert code_of(pynvml.nvmlDeviceGetProcessUtilization, handle, sample.timeStamp) == 0


def test_an_error_has_its_function_gpu_and_time(load: Load, simulated: SimulatedNvml) -> None:
    """Only the call, the GPU and the seconds that are named fail; the others work on."""
    handle = load(f"{TWO_GPUS}error 999 function=nvmlDeviceGetMemoryInfo_v2 gpu=0 from=5 until=6\nerror 15 gpu=1 from=8\n")
    other = pynvml.nvmlDeviceGetHandleByIndex(1)
    seen = []
    for second in (4, 5, 6, 8):
        simulated.set_time(second)
        memory = [code_of(pynvml.nvmlDeviceGetMemoryInfo, device, pynvml.nvmlMemory_v2) for device in (handle, other)]
        seen.append([*memory, code_of(pynvml.nvmlDeviceGetUUID, other)])
    assert seen == [[0, 0, 0], [999, 0, 0], [0, 0, 0], [0, 15, 15]]


def test_a_replaced_driver_answers_nobody_who_loaded_the_old_library(load: Load, simulated: SimulatedNvml) -> None:
    """From second 60 on every call is LIB_RM_VERSION_MISMATCH, a new nvmlInit too: the old library stays in the process."""
    handle = load("driver 580.65.06 cuda=13.0\ndriver 590.10 cuda=13.1 from=60\n" + ONE_GPU, 59)
    assert pynvml.nvmlSystemGetDriverVersion() == "580.65.06"
    assert pynvml.nvmlSystemGetNVMLVersion() == "13.580.65.06"
    assert pynvml.nvmlSystemGetCudaDriverVersion() == 13000
    simulated.set_time(60)
    for function, arguments in ((pynvml.nvmlDeviceGetUUID, [handle]), (pynvml.nvmlDeviceGetCount, []), (pynvml.nvmlInit, [])):
        assert code_of(function, *arguments) == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH


def test_a_call_takes_its_latency(load: Load) -> None:
    """One function may be slow and the rest fast."""
    handle = load(f"{ONE_GPU}latency 100\nlatency 30000 function=nvmlDeviceGetComputeRunningProcesses_v3\n")
    spent = {}
    for function in (pynvml.nvmlDeviceGetMemoryInfo, pynvml.nvmlDeviceGetComputeRunningProcesses):
        spent[function.__name__] = min(_seconds(function, handle) for _ in range(3))
    assert spent["nvmlDeviceGetMemoryInfo"] < 0.03 <= spent["nvmlDeviceGetComputeRunningProcesses"]


def _seconds(function: Callable[[Any], object], handle: object) -> float:
    started = time.perf_counter()
    function(handle)
    return time.perf_counter() - started


def test_calls_are_counted_by_function(load: Load, simulated: SimulatedNvml) -> None:
    """The counter tells what a caller really asked for; asking empties it."""
    handle = load(ONE_GPU)
    simulated.calls()
    for _ in range(3):
        pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    pynvml.nvmlDeviceGetName(handle)
    assert simulated.calls("nvmlDeviceGetMemoryInfo_v2") == 3
    assert (simulated.calls(), simulated.calls()) == (1, 0)


def test_a_handle_that_was_never_given_is_refused(load: Load) -> None:
    """A pointer from elsewhere does not end the program."""
    load(ONE_GPU)
    assert code_of(pynvml.nvmlDeviceGetMemoryInfo, pynvml.c_nvmlDevice_t()) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_without_init_nothing_is_answered(simulated: SimulatedNvml) -> None:
    """UNINITIALIZED before the first nvmlInit."""
    simulated.load(ONE_GPU)
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert pynvml.nvmlErrorString(pynvml.NVML_ERROR_GPU_IS_LOST) == "NVML_ERROR_GPU_IS_LOST"
