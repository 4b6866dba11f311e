"""What a step of one rank comes to: the figures that an answer is put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from peakgate.memory.choices import BEFORE_STEP, PHASES
from peakgate.memory.hole import hole_bytes
from peakgate.memory.meter import High, Point
from peakgate.memory.phases import other_phases
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.resident import resident_lines
from peakgate.memory.saved_bytes import saved_bytes_per_layer
from peakgate.memory.states import States
from peakgate.memory.step import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Bytes of one rank's step beyond what is resident, and what is."""

    blocks: Mapping[str, int]
    """The highest blocks of each phase, in the order of PHASES."""
    live: tuple[int, int]
    """The highest live bytes before the optimizer's step, and from it on."""
    by: Callable[[str], Mapping[str, int]]
    """The blocks by category at a phase's highest moment."""
    pools: Mapping[str, int]
    """The highest blocks of each CUDA stream."""
    hole: int
    """What the loss leaves that no later request fits into."""
    points: Callable[[], Iterable[Point]]
    resident: Sequence[LedgerLine]
    saved: int
    """Saved bytes a layer."""


def counts_of(plan: Plan, stage: Stage, walked: Walk, *, details: bool = True) -> Counts:
    """The counts of a walk; without `details` what only an answer names is not computed."""
    seen = walked.highs | other_phases(plan, stage, gradients_left(plan, walked.states))
    highs = {phase: seen[phase] for phase in PHASES if phase in seen}
    return Counts(
        blocks={phase: high.blocks for phase, high in highs.items()},
        live=(_live(high for phase, high in highs.items() if phase in BEFORE_STEP), _live(highs[p] for p in highs if p not in BEFORE_STEP)),
        by=lambda phase: highs[phase].by,
        pools=walked.pools,
        hole=hole_bytes(plan, stage),
        points=lambda: walked.points,
        resident=resident_lines(plan, stage, walked.states, walked.weights, walked.input_bytes),
        saved=saved_bytes_per_layer(plan) if details else 0,
    )


def _live(highs: Iterable[High]) -> int:
    return max((high.live for high in highs), default=0)


def gradients_left(plan: Plan, states: States) -> int:
    """Bytes of gradients that a step leaves behind, beside those with a buffer of their own."""
    return 0 if plan.set_to_none else states.trained_bytes - states.gradients
