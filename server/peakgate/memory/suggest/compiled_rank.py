"""One rank's step, walked once with `Form`s for every number of its plan, and evaluated for thousands of plans at once.

It is `compiled_step.py` with more variables and fewer figures: what a search asks is whether a plan fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from peakgate.memory.choices import BEFORE_STEP, PHASES
from peakgate.memory.compiled_step import FIXED, held_by_stream, highest_moments, largest_rows, streams_of
from peakgate.memory.compose import late_states
from peakgate.memory.counts import gradients_left
from peakgate.memory.forms import Form, plain, terms_of
from peakgate.memory.hole import hole_bytes
from peakgate.memory.host_memory import host_bytes
from peakgate.memory.inputs import input_bytes
from peakgate.memory.methods.rows import OWN_LOSSES
from peakgate.memory.phases import other_phases
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.pools import COMPUTE
from peakgate.memory.profiles import profile_of
from peakgate.memory.ratios import ratios_of
from peakgate.memory.recorder import Recorder
from peakgate.memory.resident import resident_lines
from peakgate.memory.step import run
from peakgate.memory.suggest.array_program import ArrayProgram, EvaluateArrays, Flags, Holds, Integers
from peakgate.memory.suggest.numbers import ALWAYS, OF_STAGE, with_numbers
from peakgate.memory.trace import Trace


@dataclass(frozen=True, slots=True)
class Figures:
    """Bytes of plans, an entry each: the blocks at the peak, what a card must have for them without what the process takes outside the
    allocator, a node's RAM."""

    allocated: Integers
    required: Integers
    host: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRank:
    """A rank as functions of the numbers in `varying`."""

    varying: tuple[str, ...]
    holds: Holds
    evaluate: EvaluateArrays
    phases: tuple[str, ...]
    streams: tuple[str, ...]
    ratios: tuple[float, float] | None
    """Of the caching allocator; None where nothing is rounded."""

    def goes(self, numbers: Mapping[str, Integers]) -> Flags:
        """For which plans the walk goes the way that was compiled; one entry where that is the same for all."""
        return self.holds(*self._columns(numbers))

    def at(self, numbers: Mapping[str, Integers]) -> Figures:
        """The figures of plans that go this way; one that is the same for all may be a number."""
        base, late, hole, host, *highest = self.evaluate(*self._columns(numbers))
        blocks = dict(zip(self.phases, highest, strict=False))
        pools = dict(zip(self.streams, highest[len(self.phases) :], strict=True))
        before = base - late + _largest([blocks[phase] for phase in self.phases if phase in BEFORE_STEP])
        after = base + _largest([blocks[phase] for phase in self.phases if phase not in BEFORE_STEP])
        allocated = np.maximum(before, after)
        required = self._required(allocated, base - np.where(before > after, late, 0), blocks, pools, hole)
        return Figures(allocated, required, host)

    def _columns(self, numbers: Mapping[str, Integers]) -> list[Integers | int]:
        """What is the same in all plans is computed with as one number."""
        columns = (numbers[name] for name in self.varying)
        return [column if column.strides[0] else int(column[0]) for column in columns]

    def _required(
        self, allocated: Integers, base: Integers, blocks: Mapping[str, Integers], pools: Mapping[str, Integers], hole: Integers
    ) -> Integers:
        """`by_ratio.by_ratio`, for arrays."""
        if self.ratios is None:
            return allocated
        highest, others = pools[COMPUTE], sum((each for stream, each in pools.items() if stream != COMPUTE), np.int64(0))
        if "loss" in blocks:
            at_loss = np.minimum(np.minimum(highest, blocks["backward"]), blocks["loss"] + hole) + hole
            highest = np.where(np.asarray(hole) > 0, np.maximum(highest, at_loss), highest)
        reserved, required = self.ratios
        reserves = np.maximum(allocated, _times(base + highest, reserved) + others)
        needed: Integers = np.minimum(_times(allocated, required), reserves)
        return needed


def _largest(arrays: Sequence[Integers]) -> Integers:
    total = np.asarray(arrays[0])
    for each in arrays[1:]:
        total = np.maximum(total, each)
    return total


def _times(sizes: Integers, ratio: float) -> Integers:
    """`int(size * ratio)` of each."""
    scaled: Integers = (np.asarray(sizes) * ratio).astype(np.int64)
    return scaled


def is_compilable(plan: Plan) -> bool:
    """Whether a plan's figures are polynomials of its numbers; what is not is predicted one by one."""
    own = plan.companions or plan.evaluation_batch or plan.loss in OWN_LOSSES
    replayed = plan.architecture.network is not None or plan.cuda_graphs != "none"
    places = plan.frozen.layers or plan.architecture.encoder or plan.degrees.stage_layers
    placed = plan.degrees.pipeline > 1 and (places or plan.degrees.schedule == "zero-bubble")
    return not (own or replayed or placed)


def compile_rank(plan: Plan, stage: Stage, varying: tuple[str, ...]) -> CompiledRank:
    """Walks a rank with variables for the numbers that vary. Raises UntraceableError where a walk needs the plain numbers."""
    trace = Trace()
    forms: dict[str, int] = {}

    def get(name: str, number: int) -> int:
        return forms[name] if name in varying else number

    numbers: dict[str, int] = {}
    with_numbers(plan, stage, numbers.setdefault)
    for name in varying:
        forms[name] = Form(trace, {(trace.variable(numbers[name], smallest=_smallest(name)),): 1})
    if plan.architecture.traits.get("inputs") in FIXED:
        forms["sequence"] = plain(forms["sequence"])
    return _compiled(*with_numbers(plan, stage, get), trace, varying)


def _smallest(name: str) -> int:
    """Of what a number may be: of most only those above 1 are taken as they come."""
    return 0 if name == "start" else 1 if name in (*ALWAYS, *OF_STAGE) else 2


def _compiled(plan: Plan, stage: Stage, trace: Trace, varying: tuple[str, ...]) -> CompiledRank:
    profile = profile_of(plan.profile)
    recorder = Recorder(trace, profile.ignored, rounds=profile.rounds)
    step, _, states, weights = run(plan, stage, recorder)
    tables = input_bytes(plan, step.machine.dims) if profile.tables else 0
    base = sum(line.bytes for line in resident_lines(plan, stage, states, weights, tables))
    plain_figures = [base, late_states(plan, states), hole_bytes(plan, stage), host_bytes(plan, states)]
    others = other_phases(plan, stage, gradients_left(plan, states))
    phases = tuple(phase for phase in PHASES if phase in recorder.moments and phase not in others)
    rows = {phase: [moment.blocks for moment in highest_moments(trace, kept)] for phase, kept in recorder.moments.items()}
    streams = streams_of(recorder)
    held = [largest_rows(trace, held_by_stream(recorder, stream)) for stream in streams] if len(streams) > 1 else [[*chain(*rows.values())]]
    groups = [*(rows[phase] for phase in phases), *([terms_of(high.blocks)] for high in others.values()), *held]
    return CompiledRank(
        varying=varying,
        holds=ArrayProgram(trace).holds(len(varying), trace.comparisons.values()),
        evaluate=ArrayProgram(trace).arrays(len(varying), [terms_of(each) for each in plain_figures], groups),
        phases=(*phases, *others),
        streams=streams,
        ratios=ratios_of(plan) if profile.rounds else None,
    )
