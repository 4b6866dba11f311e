"""The card that a job should ask for: the smallest and the cheapest on which it fits as it is, or a share of the stated one. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from peakgate.memory.cards import Card
from peakgate.memory.check import world_of
from peakgate.memory.job import Job
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.memory import Changes

WHOLE_CARD_FROM = 0.9
"""A share from here on leaves others too little of the card to run anything on."""


def smallest_gpu(job: Job, assessor: Assessor, *, whole: bool = False) -> str:
    """The catalogue name of the smallest GPU, or MIG slice for a job of one GPU, on which the job fits; empty: none. `whole`: no slices."""
    cards = (card for card in assessor.memory.cards(job) if not card.all_of_one and not (whole and "/" in card.name))
    return next(_fitting(job, cards, assessor), "")


def cheapest_gpu(job: Job, assessor: Assessor) -> str:
    """The first on which the job fits of those that the operator priced or ordered; empty: none, or nothing was stated."""
    able = {card.name: card for card in assessor.memory.cards(job)}
    return next(_fitting(job, (able[name] for name in assessor.policy.gpu_order if name in able), assessor), "")


def _fitting(job: Job, cards: Iterable[Card], assessor: Assessor) -> Iterator[str]:
    """Names of the cards on which the job fits, in their order. Cards of one kind need the same, so that most are not predicted."""
    needed_bytes: dict[tuple[int, int], int] = {}
    for card in cards:
        if needed_bytes.get(card.kind, 0) > card.usable_bytes:
            continue
        changed = assessor.changed(job, _on(card.name, job))
        if changed is None or not changed.decided:
            continue
        needed_bytes[card.kind] = changed.bound_bytes
        if changed.fits:
            yield card.name


def _on(name: str, job: Job) -> Changes:
    unset_memory: Changes = (("gpu.memory_bytes", 0),) if job.gpu.memory_bytes else ()
    return (("gpu.type", name), *unset_memory)


def memory_fraction(job: Job, assessment: Assessment) -> float:
    """The share of the stated card that an admitted job of one GPU should ask for, rounded up; 0: the whole card, or not known.

    In whole hundredths, which every scheduler that shares cards takes: KAI Scheduler's and Run:ai's annotation `gpu-fraction` is a
    number below 1 (kai-scheduler/api utilities/resources, GetGPUFraction), HAMi's resource `nvidia.com/gpumem-percentage` a whole
    number (Project-HAMi/HAMi docs/examples/use_memory_fraction.yaml). A MIG slice or a share is not shared further.
    """
    card = assessment.capacity
    if card is None or not assessment.fits or not card.total_bytes or "/" in card.gpu or card.is_part or world_of(job) > 1:
        return 0.0
    share = math.ceil(100 * assessment.bound_bytes / card.total_bytes) / 100
    return share if share < WHOLE_CARD_FROM else 0.0
