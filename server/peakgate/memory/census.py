"""How many elements a rank holds, by where they sit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakgate.memory.plan import Degrees, Plan

if TYPE_CHECKING:
    from peakgate.memory.tape import Parameter

Sizes = tuple[int, ...]
"""Elements of each weight, in the order of the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Elements that one rank holds, whole (before sharding over data parallel ranks)."""

    layers: dict[str, Sizes]
    """Of one layer of each kind, but for experts that have data parallel ranks of their own …"""
    experts: dict[str, Sizes]
    """… which are these."""
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
    few = replace(plan, micro_batch=1, sequence=sequence, target=target, completion=sequence, accumulation=1, evaluation_batch=0)
    return replace(few, checkpointing="none", loss="full", companions=())


def by_mesh(layers: Mapping[str, Sequence[Parameter]], degrees: Degrees) -> tuple[dict[str, Sizes], dict[str, Sizes]]:
    """(weights sharded over all data parallel ranks, experts over ranks of their own) of a layer of each kind."""
    apart = {kind: [degrees.expert_shard > 0 and p.name.startswith("experts.") for p in listed] for kind, listed in layers.items()}
    common = {kind: tuple(p.elements for p, own in zip(listed, apart[kind], strict=True) if not own) for kind, listed in layers.items()}
    experts = {kind: tuple(p.elements for p, own in zip(listed, apart[kind], strict=True) if own) for kind, listed in layers.items()}
    return common, experts
