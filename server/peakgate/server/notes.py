"""What an admitted job leaves of its card, when that is most of it, and what would do instead. Pure."""

from __future__ import annotations

from peakgate.memory.job import Job
from peakgate.server.assess import Assessment
from peakgate.server.cards import memory_fraction
from peakgate.server.reasons import card_words, gigabytes

WASTEFUL_BELOW = 0.5
"""Share of the usable bytes below which a job leaves most of its card free."""


def wastes(assessment: Assessment) -> bool:
    """Whether an admitted job leaves most of its card free."""
    return assessment.fits and assessment.bound_bytes < WASTEFUL_BELOW * assessment.usable_bytes


def predict_notes(job: Job, assessment: Assessment) -> tuple[str, ...]:
    """What costs nothing to say: the free bytes, and the share of the card that would do."""
    if not wastes(assessment):
        return ()
    free = f"{_free(assessment)}; `peakgate suggest` names the smallest GPU and the largest micro-batch that fit"
    fraction = memory_fraction(job, assessment)
    return (free, f"{fraction:.2f} of the card would do: {share_words(fraction)}") if fraction else (free,)


def suggest_notes(job: Job, assessment: Assessment, *, smallest_gpu: str, largest_micro_batch_size: int) -> tuple[str, ...]:
    """The same with the other two ways to use the card better."""
    if not wastes(assessment) or assessment.capacity is None:
        return ()
    ways = []
    if smallest_gpu and smallest_gpu != assessment.capacity.gpu:
        ways.append(f"{smallest_gpu} would do")
    fraction = memory_fraction(job, assessment)
    if fraction:
        ways.append(f"{fraction:.2f} of the card would do ({share_words(fraction)})")
    if largest_micro_batch_size > (job.batch.micro_batch_size or 0):
        ways.append(f"a micro-batch of {largest_micro_batch_size} fits it")
    return (f"{_free(assessment)}{': ' if ways else ''}{'; '.join(ways)}",)


def share_words(fraction: float) -> str:
    """How the schedulers that share cards are asked for it; sources at `memory_fraction`."""
    percent = round(100 * fraction)
    return f'annotation gpu-fraction: "{fraction:.2f}" for KAI Scheduler and Run:ai, nvidia.com/gpumem-percentage: {percent} for HAMi'


def _free(assessment: Assessment) -> str:
    free_bytes = assessment.usable_bytes - assessment.bound_bytes
    return f"{gigabytes(free_bytes)} of the {gigabytes(assessment.usable_bytes)} usable of {card_words(assessment.capacity)} stay free"
