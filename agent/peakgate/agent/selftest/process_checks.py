"""Checks of what NVML says about processes: the lists, their pids, and the exact peaks of accounting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_codes import NOT_FOUND
from peakgate.agent.nvml_module import ProcessInfo
from peakgate.agent.samples import Gpu
from peakgate.agent.selftest.finding import Finding, failed, gibibytes, listed, noted, passed
from peakgate.agent.selftest.node import LIST_NAMES, Node

LARGEST_UNATTRIBUTED_BYTES = 1 << 30
"""Memory of a GPU beyond its processes' that is worth a word: managed memory and buffers of a display are not a process's."""
EARLIEST_SECONDS = 1_735_689_600
"""2025-01-01 UTC: a start before this version was written is no wall time."""
TOLERANCE_BYTES = 1 << 20
"""The driver counts in pages of its own."""


def lists(node: Node) -> Finding:
    """Compute, graphics and MPS processes can be listed, with their memory."""
    rows = [row for gpu in node.gpus for row in _rows_of(node, gpu)]
    counts = Counter(kind for kind, row in rows if row)
    missing = {kind for kind, row in rows if row is None}
    without = sum(row.usedGpuMemory is None for _, row in rows if row)
    seen = ", ".join(f"{kind}: {'not supported' if kind in missing else counts[kind]}" for kind in LIST_NAMES.values())
    if without:
        remedy = "the whole card's memory stands in for a process that is alone on it"
        return noted("lists", f"{seen}; {without} without a figure", remedy)
    if "compute" in missing:
        return noted("lists", seen, "the agent reports the memory of whole cards only")
    return passed("lists", seen)


def pids(node: Node) -> Finding:
    """The pids are those of this machine's /proc, without which no process can be given to a job."""
    found = sorted({row.pid for gpu in node.gpus for _, row in _rows_of(node, gpu) if row})
    unknown = [pid for pid in found if node.proc.start_ticks(pid) is None]
    if unknown:
        remedy = "run the agent with the host's pids (hostPID: true, --pid=host), or outside the container"
        return failed("pids", f"{len(unknown)} of {len(found)} are not in /proc: {listed(unknown)}", remedy)
    if not found:
        return noted("pids", "no process on any GPU", "run it again while a job runs")
    return passed("pids", f"{len(found)} known to /proc")


def attributed(node: Node) -> Finding:
    """The memory of the listed processes is the memory of the card."""
    left = []
    for gpu in node.gpus:
        used, known = node.nvml.used_bytes(gpu), _memory_by_pid(node, gpu)
        if used is None or None in known.values():
            continue
        rest = used - sum(size for size in known.values() if size is not None)
        left += [f"{gibibytes(rest)} of {gpu.uuid}"] if rest > LARGEST_UNATTRIBUTED_BYTES else []
    if left:
        remedy = "managed memory, buffers of a display, or pids that are hidden from the agent"
        return noted("attributed", f"{listed(left)} belong to no listed process", remedy)
    return passed("attributed", "no GPU holds memory without a process")


def accounting(node: Node) -> Finding:
    """Where it is on, the driver's exact peaks can be read, and are no less than what the process holds now."""
    off, forgets, strange, peaks = [], [], [], 0
    for uuid, handle in node.cards():
        mode = node.ask_if_supported(node.binding.nvmlDeviceGetAccountingMode, handle)
        if mode is None or node.in_mig_mode(handle):
            continue
        if not mode:
            off.append(uuid)
            continue
        forgets += [uuid] if node.ask_if_supported(node.binding.nvmlDeviceGetPersistenceMode, handle) == 0 else []
        found = node.ask(node.binding.nvmlDeviceGetAccountingPids, handle)
        peaks += len(found)
        strange += [f"pid {pid} on {uuid}: {problem}" for pid in found if (problem := _strange(node, handle, pid))]
    if strange:
        return failed("accounting", listed(strange), "report this driver; with nvidia-smi -am 0 peaks are sampled")
    if off:
        return noted("accounting", f"off on {listed(off)}: peaks are sampled", "nvidia-smi -am 1 as root gives exact peaks")
    if forgets:
        seen = f"{peaks} exact peaks; {listed(forgets)} without persistence"
        return noted("accounting", seen, "nvidia-smi -pm 1, or the mode is lost when no program uses the driver")
    return passed("accounting", f"{peaks} exact peaks can be read")


def _strange(node: Node, handle: object, pid: int) -> str:
    try:
        stats = node.ask(node.binding.nvmlDeviceGetAccountingStats, handle, pid)
    except NvmlError as error:
        if error.code != NOT_FOUND:
            raise
        return ""  # a newer process has taken its place in the driver's ring
    start_seconds = stats.startTime / 1e6
    if not EARLIEST_SECONDS < start_seconds <= node.wall() + 1:
        return f"began at {start_seconds:.0f} s, which is no wall time"
    rows = node.newest(node.process_lists()["compute"], handle) or ()
    now = max((row.usedGpuMemory or 0 for row in rows if row.pid == pid), default=0)
    if stats.isRunning and stats.maxMemoryUsage is not None and stats.maxMemoryUsage + TOLERANCE_BYTES < now:
        return f"peak {gibibytes(stats.maxMemoryUsage)} below the {gibibytes(now)} that it holds now"
    return ""


def _memory_by_pid(node: Node, gpu: Gpu) -> dict[int, int | None]:
    """A process that is in two lists holds its memory once; None where a figure is not available."""
    found: dict[int, int | None] = {}
    for row in (row for _, row in _rows_of(node, gpu) if row):
        held = found.get(row.pid, 0)
        found[row.pid] = None if held is None or row.usedGpuMemory is None else max(held, row.usedGpuMemory)
    return found


def _rows_of(node: Node, gpu: Gpu) -> Iterator[tuple[str, ProcessInfo | None]]:
    """(list, row); None for a list that is not supported."""
    handle = node.handle(gpu)
    for kind, versions in node.process_lists().items():
        rows = node.newest(versions, handle)
        yield from ((kind, row) for row in ([None] if rows is None else rows))
