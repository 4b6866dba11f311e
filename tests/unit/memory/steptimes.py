"""Helpers of the step-time tests: the seeds' own example, and costs of changed jobs."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.memory.builders import plan_of, textbook_13b

from peakgate.memory.catalog.gpus import find_gpu
from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Job
from peakgate.memory.step_time import Card, StepTime, card_of, relative, sizes_of, step_time

Changes = Mapping[str, Value]


def a_card(name: str = "a100-80gb") -> Card:
    """The card of a catalogue name."""
    return card_of(find_gpu(name))


def time_of(job: Job, card: Card) -> StepTime:
    """The step of one job."""
    plan = plan_of(job)
    return step_time(plan, sizes_of(plan), card)


def cost_of(job: Job, changes: Changes, card: Card) -> float:
    """Its time with some changes over its time without."""
    return relative(time_of(job, card), time_of(with_changes(job, changes.items()), card))


def of_the_seeds(changes: Changes | None = None, *, card: str = "a100-80gb") -> float:
    """The cost of a change of Lesson 6's example on eight GPUs, eager attention, plain data parallelism."""
    return cost_of(textbook_13b({"gpu.count": 8}), changes or {}, a_card(card))
