"""Which of the sources of one GPU's memory counts. Pure.

Accounting (the driver's own maximum of a process) is exact; the in-process helper knows the allocator; a sample of NVML is what was
seen at a moment; an import is a coarse sample of somebody else's. They are never mixed: a figure names the one that it rests on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from peakgate.server.gpu_figures import GpuFigures
from peakgate.server.store.records import ACCOUNTING, FLAGS, HELPER, IMPORTED, SAMPLED, PeakRow

AGREEMENT_RATIO = 0.03
"""Of the card, within which two sources say the same. What lies outside the caching allocator (CUDA's context 0.25 to 1.3 GB,
NCCL's buffers) is the ordinary difference of NVML's figure and torch's; a missed peak is a larger one."""


@dataclass(slots=True)
class _Process:
    """One process on the GPU: what each source says of it."""

    sampled_bytes: int = 0
    accounting_bytes: int = 0
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    first_us: int = 1 << 62
    last_us: int = 0

    def take(self, row: PeakRow) -> None:
        """Takes a row of one source; an import is a sample too."""
        self.allocated_bytes = max(self.allocated_bytes, row.torch_allocated_bytes)
        self.reserved_bytes = max(self.reserved_bytes, row.torch_reserved_bytes)
        if row.source == ACCOUNTING:
            self.accounting_bytes = max(self.accounting_bytes, row.peak_bytes)
        elif row.source != HELPER:
            self.sampled_bytes = max(self.sampled_bytes, row.peak_bytes)
        self.first_us = min(self.first_us, row.first_us)
        self.last_us = max(self.last_us, row.last_us)

    def lived_with(self, other: _Process) -> bool:
        """Whether there was a moment at which both were seen."""
        return self.first_us <= other.last_us and other.first_us <= self.last_us


def figures_of(peaks: Iterable[PeakRow], *, card_bytes: int = 0) -> list[GpuFigures]:
    """One entry a GPU. Where an agent saw a GPU of the job, imported figures do not count.

    `card_bytes` is the card that the job asked for: it stands in where the source does not know the card, as imports do not.
    """
    rows = list(peaks)
    seen = [row for row in rows if row.source not in IMPORTED] or rows
    by_gpu: dict[tuple[str, str, str], list[PeakRow]] = {}
    for row in seen:
        by_gpu.setdefault((row.cluster, row.node, row.gpu_uuid), []).append(row)
    return [_figures(by_gpu[key], card_bytes) for key in sorted(by_gpu)]


def worst_of(gpus: Sequence[GpuFigures]) -> GpuFigures | None:
    """The GPU with the highest device peak, of those that ran out of memory when any did; None without any."""
    ran_out = [each for each in gpus if each.has_oom]
    return max(ran_out or gpus, key=lambda each: (each.most_peak_bytes, each.node, each.gpu_uuid), default=None)


def _figures(rows: list[PeakRow], card_bytes: int) -> GpuFigures:
    source, seen_bytes = _seen(rows)
    total_bytes = max(row.gpu_total_bytes for row in rows) or card_bytes
    tolerance = int(AGREEMENT_RATIO * (total_bytes or seen_bytes))
    together = _at_the_peak(rows)
    source, least, most = _by_accounting(source, seen_bytes, together, _alone_bytes(rows), tolerance)
    flags = 0
    for row in rows:
        flags |= row.flags
    allocated, reserved = _of_helper(together, most, tolerance, flags)
    return GpuFigures(
        node=rows[0].node,
        gpu_uuid=rows[0].gpu_uuid,
        total_bytes=total_bytes,
        source=source,
        confidence=_confidence(source, flags, agrees=reserved > 0 and abs(most - reserved) <= tolerance),
        least_peak_bytes=least,
        most_peak_bytes=max(most, reserved),
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        flags=flags,
        longest_sequence=max(row.longest_sequence for row in rows),
        alloc_retries=max(row.alloc_retries for row in rows),
        has_oom=bool(flags & FLAGS["oom"]) or any(row.ooms for row in rows),
    )


def _seen(rows: list[PeakRow]) -> tuple[str, int]:
    """NVML's figure of the whole job, the maximum of the sums at one moment (process 0); else that of its largest process.

    Without any, what the import says, the accounting, or at least what the allocator had reserved.
    """
    sampled = [row for row in rows if row.source in SAMPLED or row.source in IMPORTED]
    whole = [row for row in sampled if row.pid == 0]
    best = max(whole or sampled or rows, key=lambda row: (max(row.peak_bytes, row.torch_reserved_bytes), row.source))
    if best.source == HELPER:
        return HELPER, best.torch_reserved_bytes or best.peak_bytes
    return best.source or "sampled", best.peak_bytes


def _at_the_peak(rows: list[PeakRow]) -> list[_Process]:
    """The largest process and those that were there in its time; a process that had ended before it began shares nothing with it."""
    processes: dict[tuple[str, int, int], _Process] = {}
    for row in rows:
        if row.pid != 0:
            processes.setdefault((row.boot_id, row.pid, row.pid_start_ticks), _Process()).take(row)
    found = [processes[key] for key in sorted(processes)]
    if not found:
        return []
    largest = max(found, key=lambda each: max(each.sampled_bytes, each.accounting_bytes, each.reserved_bytes))
    return [each for each in found if each.lived_with(largest)]


def _alone_bytes(rows: list[PeakRow]) -> int:
    """The driver's maximum for the whole job, which an agent gives of a job that never had a second process on the GPU; 0: none."""
    return max((row.peak_bytes for row in rows if row.source == ACCOUNTING and row.pid == 0), default=0)


def _by_accounting(source: str, seen_bytes: int, together: list[_Process], alone_bytes: int, tolerance: int) -> tuple[str, int, int]:
    """(source, least, most): with accounting of every process that was there the exact figure, of several an interval.

    The maxima of several processes need not have come together: the largest sum that was sampled is the least, their sum the most.
    A sample well above the driver's own maximum says that the two are not of the same thing: then the sample counts.
    """
    total_bytes = sum(each.accounting_bytes for each in together)
    if len(together) <= 1 and alone_bytes:
        total_bytes = max(total_bytes, alone_bytes)
    elif not together or not all(each.accounting_bytes for each in together):
        return source, seen_bytes, seen_bytes
    if seen_bytes > total_bytes + tolerance:
        return source, seen_bytes, seen_bytes
    return ACCOUNTING, total_bytes if len(together) <= 1 else min(seen_bytes, total_bytes), total_bytes


def _of_helper(together: list[_Process], peak_bytes: int, tolerance: int, flags: int) -> tuple[int, int]:
    """(allocated, reserved) of the only process of the GPU; (0, 0) when they are another's, or the allocator is CUDA's own."""
    if len(together) != 1 or flags & FLAGS["async_allocator"]:
        return 0, 0
    allocated, reserved = together[0].allocated_bytes, together[0].reserved_bytes
    return (allocated, reserved) if 0 < allocated <= reserved <= peak_bytes + tolerance else (0, 0)


def _confidence(source: str, flags: int, *, agrees: bool) -> str:
    if source == ACCOUNTING:
        return "A"
    if source in IMPORTED:
        return "D"
    if agrees and source != HELPER:
        return "B"
    return "D" if flags & FLAGS["fluctuating"] or source == HELPER else "C"
