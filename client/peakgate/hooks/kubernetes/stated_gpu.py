"""What a workload's own words say of its GPU, held against what the cluster tells: what the cluster tells for sure wins. Pure.

A submitter that names a card where the selection leaves it open knows more than the cluster does. Where the selection names the card, or
the nodes leave no other, a word to the contrary is a mistake, or a way round a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.hooks.kubernetes.candidates import Candidate, Cards
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.reading import Read
from peakgate.hooks.kubernetes.workload_cards import cards_of_workload
from peakgate.hooks.kubernetes.workloads import names_a_gpu
from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.v1.training_job_pb2 import TrainingJob

GPU_FIELDS = ("gpu.memory_bytes", "gpu.type")
"""The first that is stated counts, as in the document."""

APART = 0.1
"""Memory that differs by less is the same card, told by its name and by its driver: an L4 of 24 GB has 23,034 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCards:
    """The cards that a job is judged on; `overruled`: its own word for its GPU and what counts in its place, empty when it counts."""

    cards: Cards = field(default_factory=Cards)
    overruled: str = ""


def asked_of(read: Read, job: TrainingJob, facts: Facts) -> AskedCards:
    """The cards of what was read."""
    cards = cards_of_workload(read.pods, facts)
    stated = next((each for each in GPU_FIELDS if each in own_fields(read)), "")
    if not stated:
        return AskedCards(cards=cards)
    if not _is_sure(cards):
        return AskedCards()
    if any(_is_the_same(job, each, facts.catalogue) for each in cards.candidates):
        return AskedCards(cards=cards)
    word = job.gpu.memory_bytes or job.gpu.type
    return AskedCards(cards=cards, overruled=f"it states {stated} {word}, and gets {' or '.join(_names(cards))}: judged on that")


def own_fields(read: Read) -> frozenset[str]:
    """What the submitter states in peakgate's own words."""
    return frozenset(read.source.launch.reading.own) if read.source is not None and read.source.launch is not None else frozenset()


def trains_without_gpus(read: Read, facts: Facts) -> bool:
    """Of a TrainJob, of which only its runtime tells. Not where the runtime could not be read, a resource of a name of the cluster's own
    may be one, or the job states its GPU."""
    if not read.pods or read.is_partial or not own_fields(read).isdisjoint(GPU_FIELDS):
        return False
    return not any(names_a_gpu(each) for each in read.pods) and not cards_of_workload(read.pods, facts).has_gpus


def _is_sure(cards: Cards) -> bool:
    """Whether it gets one of these and no other; a selection of at least so much memory leaves the card open."""
    return bool(cards.candidates) and cards.is_complete and not cards.doubt and not any(each.is_least for each in cards.candidates)


def _is_the_same(job: TrainingJob, card: Candidate, catalogue: Mapping[str, int]) -> bool:
    """Also where nobody knows both sizes and they do not have two names."""
    if not job.gpu.memory_bytes and card.gpu in (job.gpu.type, *gpus_named(job.gpu.type)):
        return True
    stated, told = job.gpu.memory_bytes or catalogue.get(job.gpu.type, 0), card.memory_bytes or catalogue.get(card.gpu, 0)
    return abs(stated - told) <= APART * told if stated and told else not card.gpu


def _names(cards: Cards) -> list[str]:
    return list(dict.fromkeys(each.name for each in cards.candidates))
