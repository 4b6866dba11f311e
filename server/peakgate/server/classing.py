"""What an ended attempt says of the need, as a table of rules: the first one that applies decides. Pure.

Each rule names what must have been seen, what kind of observation it makes of it, and the lower end of the need that it leaves.
What no rule catches is exact: a job that took its steps and came to its end, with its figure its own.

An out-of-memory is one of the GPU. Exit status 137 or 9 is a process that was killed, by whomever, and Slurm's state OUT_OF_MEMORY is
the node's RAM: both come as `failed` or `cancelled`, and neither is a GPU's out-of-memory unless the helper or the caller says so.

How long a job ran is no evidence of how many steps it took: a job of the in-process helper has counted them, of others it is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from peakgate.calibration.gate import CARD_FULL, FULL_CARD_RATIO, HIGHEST_CARD_RATIO
from peakgate.calibration.observation import EXCLUSIVE_CARD_RATIO
from peakgate.server.gpu_figures import GpuFigures
from peakgate.server.store.records import HELPER

OUT_OF_MEMORY = "OUT_OF_MEMORY"
"""The reason word of an attempt that ran out of the GPU's memory."""

SECOND_STEP = 2
"""The first optimizer step makes the states that the second one meets, so that only the second step has the whole peak."""


class Kind(StrEnum):
    """What an observation says of the need."""

    EXACT = "exact"
    """It lies between the ends."""
    LOWER = "lower"
    """It is at least the lower end."""
    UPPER = "upper"
    """It lies between the ends, and the upper one is where the card, not the need, ended the growth of the cache."""
    DROPPED = "dropped"
    """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the rules look at. `steps_done` is None where nobody counted."""

    worst: GpuFigures
    event: str
    is_same_model: bool
    has_several: bool
    """A row of the attempt, of whichever GPU or source, says that several trainings ran under its prediction."""
    has_oom: bool
    has_xid: bool
    was_cut_off: bool
    is_end_unknown: bool
    """A card was nearly full when the processes left it, and nobody said whether that was what ended them."""
    steps_done: int | None
    is_length_unknown: bool
    """The stated sequence length is a cap, and nobody saw how long the longest sequence was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of the table. `message` is a line for a person; `lower_bytes` the lower end of the need.

    `keeps_confidence`: the source's class still says how near the figure is; without it the class is X, none.
    """

    reason: str
    kind: Kind
    applies: Callable[[Evidence], bool]
    message: str
    lower_bytes: Callable[[GpuFigures], int] = lambda gpu: gpu.in_use_bytes
    keeps_confidence: bool = False


def _card_or_peak(gpu: GpuFigures) -> int:
    """The whole card when it was the job's own: the request that failed would not have fitted into what was left of it."""
    own = gpu.total_bytes and gpu.least_peak_bytes >= EXCLUSIVE_CARD_RATIO * gpu.total_bytes
    return max(gpu.least_peak_bytes, gpu.total_bytes) if own else gpu.least_peak_bytes


def _peak_unless_full(gpu: GpuFigures) -> int:
    """The peak; with the helper's figures, or on a card that the cache had filled, only what was in use."""
    return gpu.in_use_bytes if gpu.has_helper or _is_full(gpu) else gpu.least_peak_bytes


def _is_full(gpu: GpuFigures) -> bool:
    """What is more than the card holds did not fill it: that is another unit or another card, and the gate says so."""
    return FULL_CARD_RATIO * gpu.total_bytes < gpu.least_peak_bytes <= HIGHEST_CARD_RATIO * gpu.total_bytes


RULES: tuple[Rule, ...] = (
    Rule(
        reason="OTHER_MODEL",
        kind=Kind.DROPPED,
        applies=lambda seen: not seen.is_same_model,
        message="another version of the memory model made the prediction: its error is not the error of the one in use",
    ),
    Rule(
        reason="SHARED_FIGURE",
        kind=Kind.DROPPED,
        applies=lambda seen: seen.has_several or seen.worst.has("mps"),
        message="the figure is shared: by MPS with other jobs, or by several trainings under one prediction",
    ),
    Rule(
        reason=OUT_OF_MEMORY,
        kind=Kind.LOWER,
        applies=lambda seen: seen.has_oom,
        message="the GPU ran out of memory: the request that failed never became a peak",
        lower_bytes=_card_or_peak,
    ),
    Rule(
        reason="HARDWARE_ERROR",
        kind=Kind.DROPPED,
        applies=lambda seen: seen.has_xid,
        message="the GPU reported an error of the hardware (Xid) while the job ran",
    ),
    Rule(
        reason="PREALLOCATED",
        kind=Kind.DROPPED,
        applies=lambda seen: seen.worst.has("preallocated"),
        message="the process takes a part of the card ahead of need, as JAX and TensorFlow do",
    ),
    Rule(
        reason="UNATTRIBUTED",
        kind=Kind.DROPPED,
        applies=lambda seen: seen.worst.has("unattributed"),
        message="memory of the GPU grew with the job and belongs to no process, as managed memory does",
    ),
    Rule(
        reason="CUT_SHORT",
        kind=Kind.LOWER,
        applies=lambda seen: seen.was_cut_off or seen.event in ("failed", "cancelled"),
        message="the job failed, was killed, or its GPU was lost before its end was seen: more may have come",
        lower_bytes=_peak_unless_full,
    ),
    Rule(
        reason="END_UNKNOWN",
        kind=Kind.LOWER,
        applies=lambda seen: seen.is_end_unknown,
        message="it ended on a card that was nearly full, and nobody said how: the need may have been more, or the cache had filled it",
    ),
    Rule(
        reason="NO_SECOND_STEP",
        kind=Kind.LOWER,
        applies=lambda seen: seen.steps_done is not None and seen.steps_done < SECOND_STEP,
        message="the in-process helper counted fewer than two steps, and the second one is the first with all states in place",
        lower_bytes=_peak_unless_full,
    ),
    Rule(
        reason="NO_DEVICE_FIGURE",
        kind=Kind.LOWER,
        applies=lambda seen: seen.worst.source == HELPER,
        message="only the caching allocator was seen, and what lies outside it was not",
        lower_bytes=lambda gpu: gpu.allocated_bytes or gpu.in_use_bytes,
    ),
    Rule(
        reason="AVERAGED",
        kind=Kind.LOWER,
        applies=lambda seen: seen.worst.has("averaged"),
        message="the figure is the mean of several GPUs, and the worst of them had at least that",
        keeps_confidence=True,
    ),
    Rule(
        reason=CARD_FULL,
        kind=Kind.DROPPED,
        applies=lambda seen: _is_full(seen.worst) and not seen.worst.has_helper,
        message="the allocator had filled the card with its cache, so the peak is not the need",
    ),
    Rule(
        reason="LENGTH_UNKNOWN",
        kind=Kind.LOWER,
        applies=lambda seen: seen.is_length_unknown,
        message="the sequence length is a cap and the longest sequence was not seen: the job may have needed less than one at the cap",
        keeps_confidence=True,
    ),
    Rule(
        reason="CACHE_FLUSHED",
        kind=Kind.UPPER,
        applies=lambda seen: seen.worst.alloc_retries > 0,
        message="the allocator gave its cache back and went on: the need is at most the peak",
        keeps_confidence=True,
    ),
)
"""In order: what makes the figure another's comes before what bounds it, and what bounds it before what only doubts it.

Where they come from:
OTHER_MODEL, CARD_FULL, CUT_SHORT, END_UNKNOWN, NO_SECOND_STEP, the limits 0.9 and 0.985, and the whole card as the end of an
  out-of-memory: the labels that the margin is made for (peakgate.calibration.Observation);
SHARED_FIGURE: NVML lists an MPS server and not its clients (dcgm-exporter PR 734);
HARDWARE_ERROR: docs.nvidia.com/deploy/xid-errors, errors that end a process of any size;
PREALLOCATED: XLA_PYTHON_CLIENT_PREALLOCATE (JAX, "GPU memory allocation"), TensorFlow's set_memory_growth;
UNATTRIBUTED: managed memory is missing in NVML's list of processes (pynvml issue 63);
NO_DEVICE_FIGURE: torch.cuda.memory_stats counts what the allocator asked for, not the context, NCCL or the libraries;
AVERAGED: gres/gpumem is of a task, summed over its GPUs (slurm gpu_nvml.c: gpu_p_usage_read);
LENGTH_UNKNOWN: padded data is as long as its longest sequence, which a cap only bounds;
CACHE_FLUSHED: num_alloc_retries, CUDACachingAllocator.cpp: release_cached_blocks before an error is raised.
"""

EXACT = Rule(
    reason="",
    kind=Kind.EXACT,
    applies=lambda _: True,
    message="",
    keeps_confidence=True,
)


def rule_for(evidence: Evidence) -> Rule:
    """The rule that decides."""
    return next((rule for rule in RULES if rule.applies(evidence)), EXACT)
