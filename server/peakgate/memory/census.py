"""How many elements a rank holds, by where they sit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.memory.plan import Plan

Sizes = tuple[int, ...]
"""Elements of each weight, in the order of the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Elements that one rank holds, whole (before sharding over data parallel ranks)."""

    layers: dict[str, Sizes]
    """Of one layer of each kind."""
    embedding: Sizes
    head: Sizes
    """Of the last norm and the head; a tied head is the embedding's."""
    total: int
    trainable: int


FEW = 8
"""Tokens enough to walk: where no table is as long as the sequence, weights do not depend on it."""


def smallest(plan: Plan) -> Plan:
    """A plan with the same weights and the least of everything else."""
    sequence = plan.sequence if plan.architecture.traits.get("inputs") == "sound" else FEW
    target = FEW if plan.target else 0
    return replace(plan, micro_batch=1, sequence=sequence, target=target, accumulation=1, checkpointing="none", loss="full")
