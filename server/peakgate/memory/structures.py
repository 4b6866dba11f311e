"""Compiled steps by all that a job says beside its shape: a job like one that was seen before is evaluated, not walked."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import attrgetter

from peakgate.memory.absurd import LARGEST, endless_losses
from peakgate.memory.architecture import Architecture
from peakgate.memory.check import longest_sequence
from peakgate.memory.compiled_step import CompiledStep, Shape, compile_step
from peakgate.memory.compose import Rank, compose
from peakgate.memory.forms import UntraceableError
from peakgate.memory.job import Batch, Job, Model
from peakgate.memory.lengths import lengths_of
from peakgate.memory.prediction import Prediction

SHAPE = ("micro_batch_size", "sequence_length", "target_length")
"""Fields of the batch that a compiled step takes as they come."""

VARIANTS = 8
"""Compiled steps of one structure: a walk takes another way for a batch of one, or for another number of chunks of the loss."""

KEPT = 256
"""Structures that are remembered; a compiled one takes about 0.2 MB."""

_beside = attrgetter(*(each.name for each in fields(Job) if each.name not in ("name", "model", "batch")))
_of_batch = attrgetter(*(each.name for each in fields(Batch) if each.name not in SHAPE))

Ranks = Sequence[tuple[Rank, CompiledStep]]


@dataclass(slots=True)
class Structure:
    """What is known of jobs that differ in their shape alone."""

    architecture: Architecture | None = None
    variants: list[Ranks] = field(default_factory=list)
    walks: int = 0
    traceable: bool = True
    longest: int = 0
    """Tokens that a job may state."""

    def at(self, job: Job) -> Prediction | None:
        """The prediction for a job, when it was compiled for the way that its shape takes."""
        if self.architecture is None:
            return None
        shape = shape_of(job, self.architecture)
        if min(shape) < 1 or max(shape) > LARGEST["batch"] or (job.batch.sequence_length or 0) > self.longest or any(endless_losses(job)):
            return None
        for ranks in self.variants:
            counts = [step.at(shape) for _, step in ranks]
            known = [compose(rank, each, exact=False) for (rank, _), each in zip(ranks, counts, strict=True) if each is not None]
            if len(known) == len(ranks):
                self.variants = [ranks, *(other for other in self.variants if other is not ranks)]  # the next job is like this one
                return max(known, key=lambda each: each.allocated_bytes)
        return None

    def walked(self, job: Job, architecture: Architecture, ranks: Sequence[Rank]) -> None:
        """A job was walked: the second time its ranks are compiled."""
        self.walks += 1
        if self.walks < 2 or len(self.variants) == VARIANTS or not self.traceable:
            return
        plan = ranks[0].plan
        if shape_of(job, architecture) != (plan.micro_batch, plan.sequence, *([plan.target] if plan.target else [])):
            self.traceable = False  # the method makes other batches of what is stated
            return
        try:
            self.variants = [*self.variants, [(rank, compile_step(rank.plan, rank.stage)) for rank in ranks]]
            self.architecture, self.longest = architecture, longest_sequence(job)
        except UntraceableError:
            self.traceable = False


def shape_of(job: Job, architecture: Architecture) -> Shape:
    """The shape that a job states."""
    lengths = lengths_of(job, architecture)
    return (job.batch.micro_batch_size or 0, lengths.sequence, *([lengths.target] if lengths.target else []))


def structure_of(job: Job) -> Structure | None:
    """The structure of a job; None of one that is not walked, or whose model cannot be told from others."""
    if job.model.profile is not None or job.model.operations is not None or (job.method.name and job.batch.target_length):
        return None
    try:
        return _structure((_model_key(job.model), not job.batch.target_length, *_beside(job), *_of_batch(job.batch)))
    except TypeError:  # a second model that is a config.json
        return None


@lru_cache(maxsize=KEPT)
def _structure(_: Hashable) -> Structure:
    return Structure()


def forget_structures() -> None:
    """Starts over, as a service that has seen no job."""
    _structure.cache_clear()


def _model_key(model: Model) -> Hashable:
    return model if model.hf_config is None else json.dumps(model.hf_config, sort_keys=True)
