"""An ended attempt -> what it says about the need: between which bounds it lies, or why nothing can be said. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from peakgate.calibration import Observation
from peakgate.server.clock import MICROSECONDS
from peakgate.server.store.records import FLAGS, Attempt, PeakRow

LARGEST_CACHE_RATIO = 1.35
"""Reserved over allocated: 1.26 to 1.35 were printed for full fine-tunes (llama-cookbook issues 41 and 165), so the blocks in use
were at least the device peak over this."""

FULL_CARD_RATIO = 0.985
"""From here on the allocator had filled the card with its cache: the peak says nothing about the need of a job that went on."""

EXCLUSIVE_CARD_RATIO = 0.9
"""An out-of-memory with at least this much of the card in use was the job's own: then it needs the whole card or more."""


NO_PEAKS = "NO_PEAKS"
"""The reason word of an attempt of which no GPU was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The worst GPU's device peak, and an observation; without one, a reason word and a line for a person."""

    observed_bytes: int
    observation: Observation | None
    reason: str = ""
    message: str = ""


def observe(attempt: Attempt, *, model_version: str) -> Observed:
    """The one observation of an attempt: its worst GPU, by device peak. Figures of another memory model are not compared."""
    worst = worst_gpu(attempt.peaks)
    if worst is None:
        return Observed(observed_bytes=0, observation=None, reason=NO_PEAKS, message="the job ended and no GPU of it was seen")
    if attempt.model_version != model_version:
        message = f"memory model {attempt.model_version} made the prediction, and {model_version} is in use"
        return _dropped(worst, "OTHER_MODEL", message)
    peak_bytes, total_bytes = worst.peak_bytes, worst.gpu_total_bytes
    if attempt.event == "oom":
        whole_card = peak_bytes >= EXCLUSIVE_CARD_RATIO * total_bytes
        return _bounded(attempt, worst, lower_bytes=max(peak_bytes, total_bytes) if whole_card else peak_bytes, upper_bytes=None)
    if _has(worst, "preallocated", "mps"):
        return _dropped(worst, "PEAK_NOT_OF_THE_JOB", "the process takes memory ahead of need, or shares its figure with others")
    if attempt.event in ("failed", "cancelled") or _has(worst, "censored", "truncated"):
        return _bounded(attempt, worst, lower_bytes=peak_bytes, upper_bytes=None)
    if total_bytes and peak_bytes > FULL_CARD_RATIO * total_bytes:
        return _dropped(worst, "CARD_FULL", "the allocator had filled the card with its cache, so the peak is not the need")
    return _bounded(attempt, worst, lower_bytes=in_use_bytes(worst), upper_bytes=peak_bytes)


def worst_gpu(peaks: Iterable[PeakRow]) -> PeakRow | None:
    """The row of the GPU with the highest device peak. Where a GPU has a row of the whole job (process 0), that one counts.

    The whole job's row has no figures of torch; they are taken from the GPU's process when it had only one.
    """
    by_gpu: dict[tuple[str, str, str], list[PeakRow]] = {}
    for row in peaks:
        by_gpu.setdefault((row.cluster, row.node, row.gpu_uuid), []).append(row)
    gpus = [_of_gpu(rows) for rows in by_gpu.values()]
    return max(gpus, key=lambda row: (row.peak_bytes, row.node, row.gpu_uuid), default=None)


def _of_gpu(rows: list[PeakRow]) -> PeakRow:
    whole = [row for row in rows if row.pid == 0]
    processes = [row for row in rows if row.pid != 0]
    if not whole:
        return max(processes, key=lambda row: row.peak_bytes)
    chosen = max(whole, key=lambda row: row.peak_bytes)
    if chosen.torch_reserved_bytes or len(processes) != 1:
        return chosen
    only = processes[0]
    return replace(chosen, torch_allocated_bytes=only.torch_allocated_bytes, torch_reserved_bytes=only.torch_reserved_bytes)


def in_use_bytes(row: PeakRow) -> int:
    """A lower bound of the need: blocks in use and what lies outside the allocator.

    With torch's own figures that is device − reserved + allocated; without them the device peak over the largest cache ratio.
    """
    if 0 < row.torch_allocated_bytes <= row.torch_reserved_bytes <= row.peak_bytes:
        return row.peak_bytes - row.torch_reserved_bytes + row.torch_allocated_bytes
    return int(row.peak_bytes / LARGEST_CACHE_RATIO)


def _has(row: PeakRow, *flags: str) -> bool:
    return any(row.flags & FLAGS[flag] for flag in flags)


def _bounded(attempt: Attempt, worst: PeakRow, *, lower_bytes: int, upper_bytes: int | None) -> Observed:
    observation = Observation(
        prediction=attempt_name(attempt),
        group=attempt.group,
        required_bytes=attempt.required_bytes,
        device_bytes=attempt.device_bytes,
        lower_bytes=lower_bytes,
        upper_bytes=upper_bytes,
        finished_at=attempt.finished_us / MICROSECONDS,
    )
    return Observed(observed_bytes=worst.peak_bytes, observation=observation)


def attempt_name(attempt: Attempt) -> str:
    """What the calibration knows an attempt by: jobs that share a prediction are observations of their own."""
    return f"{attempt.prediction}/{attempt.job}/{attempt.restart}"


def _dropped(worst: PeakRow, reason: str, message: str) -> Observed:
    return Observed(observed_bytes=worst.peak_bytes, observation=None, reason=reason, message=message)
