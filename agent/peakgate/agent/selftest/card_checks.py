"""Checks of the library and the cards: versions, memory, MIG, events, what a call costs."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from statistics import median

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_codes import MIG_CONFIG_EVENT, NO_SLOT_CODES, TIMEOUT, XID_EVENT
from peakgate.agent.pace import BUDGET_RATIO
from peakgate.agent.reactions import Reaction
from peakgate.agent.sampler import DEVICE_PERIOD_SECONDS, PROCESS_PERIOD_SECONDS
from peakgate.agent.samples import Gpu
from peakgate.agent.selftest.finding import Finding, failed, gibibytes, listed, noted, passed
from peakgate.agent.selftest.node import Node

MISREAD_DRIVERS = ((535, 43), (535, 86))
"""From the first up to before the second: rows of process lists have one field more, and only nvidia-ml-py 12.535.77 reads them so.
Sources: gpustat issues 157 and 161; nvitop's libnvml.py, which has both structures."""
MISREAD_BINDING = "12.535.77"
MIB = 1 << 20
TIMED_LOOKS = 5
"""Of which the median counts, as for the agent's own cost (pace.ROUNDS)."""


def versions(node: Node) -> Finding:
    """The driver and the library belong together, and pynvml reads this driver's rows."""
    library = node.ask(node.binding.nvmlSystemGetNVMLVersion)
    binding = installed_binding()
    seen = f"driver {node.driver}, NVML {library}, nvidia-ml-py {binding}"
    first, behind = MISREAD_DRIVERS
    if first <= _numbers(node.driver) < behind and binding != MISREAD_BINDING:
        return failed("versions", f"{seen}: pynvml misreads the process lists of this driver", "update the driver to 535.86 or newer")
    if not library.endswith(node.driver):
        remedy = "another installation's library is found first: ldconfig -p | grep libnvidia-ml"
        return noted("versions", f"{seen}: library and driver are of two versions", remedy)
    return passed("versions", seen)


def installed_binding() -> str:
    """Version of the distribution that owns pynvml."""
    try:
        return version("nvidia-ml-py")
    except PackageNotFoundError:
        return "none"


def _numbers(driver: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", driver)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def gpus(node: Node) -> Finding:
    """Every GPU answers."""
    names = [gpu.name for gpu in node.gpus]
    kinds = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    if not node.complete:
        return failed("gpus", f"{listed(kinds) or 'none'} answer; another does not", "run nvidia-smi; a lost GPU needs a reset")
    return passed("gpus", listed(kinds)) if kinds else noted("gpus", "none on this node")


def memory(node: Node) -> Finding:
    """What a driver reserves, uses and has free is the whole card, to 1 MiB; then `total - reserved - free` is what programs hold."""
    broken, other = [], []
    for gpu in node.gpus:
        try:
            read = node.ask_if_supported(node.binding.nvmlDeviceGetMemoryInfo, node.handle(gpu), node.binding.nvmlMemory_v2)
        except NvmlError as error:
            if error.reaction is not Reaction.older_call:
                raise
            return noted("memory", "the driver has only the older call, whose figure includes what is reserved", "update the driver")
        if read is None:
            other.append(f"{gpu.uuid} has no memory of its own")
        elif read.total < read.reserved + read.free:
            broken.append(f"{gpu.uuid}: {gibibytes(read.reserved + read.free)} reserved and free of {gibibytes(read.total)}")
        elif abs(read.total - read.reserved - read.used - read.free) > MIB:
            other.append(f"{gpu.uuid}: used {gibibytes(read.used)} counts {gibibytes(read.reserved)} reserved; the agent takes it off")
    if not node.gpus:
        return noted("memory", "no device to ask", "what keeps them away stands at gpus or mig")
    if broken:
        return failed("memory", listed(broken), "report this driver; its figures contradict each other")
    if other:
        return noted("memory", listed(other), "nothing to do; of a GPU that shares the host's memory no peak is reported")
    return passed("memory", f"total = reserved + used + free on {len(node.gpus)} devices")


def mig(node: Node) -> Finding:
    """Each instance of a divided GPU has its ids, and a process can be found on it."""
    found, empty = [], []
    for uuid, handle in node.cards():
        if not node.in_mig_mode(handle):
            continue
        slots = range(node.ask(node.binding.nvmlDeviceGetMaxMigDeviceCount, handle))
        ids = [f"GI {pair[0]} CI {pair[1]}" for slot in slots if (pair := _instance(node, handle, slot))]
        found += ids
        empty += [] if ids else [uuid]
    if empty:
        return noted("mig", f"{listed(empty)} in MIG mode without an instance", "create instances with nvidia-smi mig, or switch MIG off")
    return passed("mig", f"{len(found)} instances: {listed(found)}" if found else "no GPU is divided")


def _instance(node: Node, handle: object, slot: int) -> tuple[int, int] | None:
    try:
        instance = node.ask(node.binding.nvmlDeviceGetMigDeviceHandleByIndex, handle, slot)
    except NvmlError as error:
        if error.code not in NO_SLOT_CODES:
            raise
        return None
    ask = node.ask
    return ask(node.binding.nvmlDeviceGetGpuInstanceId, instance), ask(node.binding.nvmlDeviceGetComputeInstanceId, instance)


def events(node: Node) -> Finding:
    """A set hears of Xid errors and MIG changes of every GPU."""
    registered, deaf = [], []
    heard = node.ask(node.binding.nvmlEventSetCreate)
    try:
        for uuid, handle in node.cards():
            types = node.ask(node.binding.nvmlDeviceGetSupportedEventTypes, handle) & (XID_EVENT | MIG_CONFIG_EVENT)
            if types & XID_EVENT:
                node.ask(node.binding.nvmlDeviceRegisterEvents, handle, types, heard)
                registered.append(uuid)
            else:
                deaf.append(uuid)
        try:
            node.ask(node.binding.nvmlEventSetWait_v2, heard, 0)
        except NvmlError as error:
            if error.code != TIMEOUT:
                raise
    finally:
        node.ask(node.binding.nvmlEventSetFree, heard)
    if deaf:
        return noted("events", f"{listed(deaf)} report no Xid errors", "a job that a hardware fault ended is not told from another there")
    return passed("events", f"Xid errors of {len(registered)} GPUs")


def call_times(node: Node) -> Finding:
    """The share of wall time that the agent's default rates spend in NVML."""
    device, lists = _seconds(node, node.nvml.used_bytes), _seconds(node, node.nvml.processes)
    share = device / DEVICE_PERIOD_SECONDS + lists / PROCESS_PERIOD_SECONDS
    seen = f"all GPUs: memory {device * 1e3:.2f} ms, process lists {lists * 1e3:.2f} ms; {share:.2%} of the time at the default rates"
    if share > BUDGET_RATIO:
        return noted("call times", seen, "nvidia-smi -pm 1 as root makes calls fast; the agent reads lists less often until then")
    return passed("call times", seen)


def _seconds(node: Node, read: Callable[[Gpu], object]) -> float:
    """Of one look at every GPU; the median of several."""
    spent = []
    for _ in range(TIMED_LOOKS):
        started = node.clock()
        for gpu in node.gpus:
            read(gpu)
        spent.append(node.clock() - started)
    return median(spent)
