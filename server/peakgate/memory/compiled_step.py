"""A step that was walked once with `Form`s for its micro-batch and its sequences, and is evaluated for any other ones.

It is a matrix of events: the rows are the moments that may be the highest of a phase, the columns the blocks that the allocator hands out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from peakgate.memory.choices import BEFORE_STEP, PHASES
from peakgate.memory.counts import Counts, gradients_left
from peakgate.memory.dominance import largest
from peakgate.memory.forms import Form, UntraceableError, added, terms_of
from peakgate.memory.hole import hole_bytes
from peakgate.memory.inputs import input_bytes
from peakgate.memory.meter import High, Point
from peakgate.memory.methods.rows import OWN_LOSSES
from peakgate.memory.phases import other_phases
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.pools import COMPUTE
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.profiles import profile_of
from peakgate.memory.program import Evaluate, Program
from peakgate.memory.recorder import Moment, Recorder, Span
from peakgate.memory.resident import resident_lines
from peakgate.memory.saved_bytes import saved_bytes_per_layer
from peakgate.memory.states import States
from peakgate.memory.step import run
from peakgate.memory.trace import Terms, Trace

Shape = tuple[int, ...]
"""(micro-batch, sequence), and the decoder's sequence of an encoder-decoder."""


FIXED = ("images", "sound")
"""Inputs that go by a table of positions as long as they are: the sequence of such a model stays what it is."""


@dataclass(slots=True, kw_only=True)
class CompiledStep:
    """The counts of one rank as functions of the shape."""

    trace: Trace
    variables: int
    states: States
    evaluate: Evaluate
    phases: tuple[str, ...]
    ledgers: tuple[Sequence[Mapping[str, Terms]], ...]
    """The blocks by category of the rows of each phase."""
    streams: tuple[str, ...]
    lines: tuple[LedgerLine, ...]
    spans: Sequence[Span]
    others: Mapping[str, High]
    """Phases outside the step, which do not depend on its shape."""
    parts: dict[tuple[int, int], Evaluate] = field(default_factory=dict)
    timeline: Evaluate | None = None

    def at(self, shape: Shape) -> Counts | None:
        """The counts of a shape; None where the walk would take another way than the one that was compiled."""
        found = self.evaluate(*shape)
        if found is None:
            return None
        (saved, hole, *sizes), highs = found
        count = len(self.phases)
        return Counts(
            blocks={phase: highs[i][0] for i, phase in enumerate(self.phases)}
            | {phase: high.blocks for phase, high in self.others.items()},
            live=(highs[count][0], max([highs[count + 1][0], *(high.live for high in self.others.values())])),
            by=lambda phase: self._parts(shape, phase, highs),
            pools={stream: highs[count + 2 + i][0] for i, stream in enumerate(self.streams)},
            hole=hole,
            points=lambda: self._points(shape),
            resident=[LedgerLine(category=line.category, item=line.item, bytes=size) for line, size in zip(self.lines, sizes, strict=True)],
            saved=saved,
        )

    def _parts(self, shape: Shape, phase: str, highs: tuple[tuple[int, int], ...]) -> Mapping[str, int]:
        if phase in self.others:
            return self.others[phase].by
        number = self.phases.index(phase)
        place = highs[number][1]
        by = self.ledgers[number][place]
        if (number, place) not in self.parts:
            self.parts[number, place] = Program(self.trace).function(self.variables, by.values(), ())
        sizes, _ = self.parts[number, place](*shape) or ((), ())
        return dict(zip(by, sizes, strict=True))

    def _points(self, shape: Shape) -> list[Point]:
        if self.timeline is None:
            rows = [span.rows for span in self.spans]
            self.timeline = Program(self.trace).function(self.variables, [span.net for span in self.spans], rows)
        nets, highs = self.timeline(*shape) or ((), ())
        return [
            Point(span.phase, span.label, high + i * net)
            for span, net, (high, _) in zip(self.spans, nets, highs, strict=True)
            for i in range(span.times)
        ]


def compile_step(plan: Plan, stage: Stage) -> CompiledStep:
    """Walks a rank of a plan with variables in place of its shape. Raises UntraceableError where a walk needs the plain numbers."""
    if plan.companions or plan.evaluation_batch or plan.loss in OWN_LOSSES:
        raise UntraceableError("other models and batches have shapes of their own; a method's loss goes sequence by sequence")
    trace = Trace()
    shape = [plan.micro_batch, plan.sequence, *([plan.target] if plan.target else [])]
    forms: list[int] = [Form(trace, {(trace.variable(size),): 1}) for size in shape]
    if plan.architecture.traits.get("inputs") in FIXED:
        trace.holds("==", terms_of(forms[1] - plan.sequence))
        forms[1] = plan.sequence
    traced = replace(plan, micro_batch=forms[0], sequence=forms[1], target=forms[2] if plan.target else 0, completion=forms[1])
    profile = profile_of(plan.profile)
    recorder = Recorder(trace, profile.ignored, rounds=profile.rounds)
    step, _, states, weights = run(traced, stage, recorder)
    if any(isinstance(getattr(states, each.name), Form) for each in fields(states)):
        raise UntraceableError("states that depend on the batch")
    tables = input_bytes(traced, step.machine.dims) if profile.tables else 0
    lines = resident_lines(traced, stage, states, weights, tables)
    saved = saved_bytes_per_layer(traced, Recorder(trace, profile.ignored))
    plain = [saved, hole_bytes(traced, stage), *(line.bytes for line in lines)]
    others = other_phases(plan, stage, gradients_left(plan, states))
    return _written(trace, recorder, states, lines, [terms_of(size) for size in plain], len(shape), others)


def _written(
    trace: Trace,
    recorder: Recorder,
    states: States,
    lines: list[LedgerLine],
    plain: list[Terms],
    variables: int,
    others: Mapping[str, High],
) -> CompiledStep:
    phases = tuple(phase for phase in PHASES if phase in recorder.moments)
    moments = [highest_moments(trace, recorder.moments[phase]) for phase in phases]
    streams = streams_of(recorder)
    groups = [
        *([moment.blocks for moment in rows] for rows in moments),
        largest_rows(trace, ([moment.live for moment in recorder.moments[phase]] for phase in phases if phase in BEFORE_STEP)),
        largest_rows(trace, ([moment.live for moment in recorder.moments[phase]] for phase in phases if phase not in BEFORE_STEP)),
        *(largest_rows(trace, held_by_stream(recorder, stream)) for stream in streams),
    ]
    return CompiledStep(
        trace=trace,
        variables=variables,
        states=states,
        evaluate=Program(trace).function(variables, plain, groups, trace.comparisons.values()),
        phases=phases,
        ledgers=tuple([moment.by for moment in rows] for rows in moments),
        streams=streams,
        lines=tuple(replace(line, bytes=0) for line in lines),
        spans=recorder.spans,
        others=others,
    )


def highest_moments(trace: Trace, moments: Sequence[Moment]) -> list[Moment]:
    """The moments of a phase that may be its highest."""
    return [moments[place] for place in largest(trace, [moment.blocks for moment in moments])]


def largest_rows(trace: Trace, parts: Iterable[Sequence[Terms]]) -> list[Terms]:
    """The polynomials that may be the largest of all parts, of which each is sorted out first: their rows are much alike."""
    rows = [rows[place] for rows in parts for place in largest(trace, rows)]
    return [rows[place] for place in largest(trace, rows)]


def streams_of(recorder: Recorder) -> tuple[str, ...]:
    """CUDA streams that something is allocated for, the model's own first."""
    every = (moment for kept in recorder.moments.values() for moment in kept)
    return tuple(dict.fromkeys((COMPUTE, *(stream for moment in every for stream in moment.streams))))


def held_by_stream(recorder: Recorder, stream: str) -> list[list[Terms]]:
    """What a CUDA stream holds at each moment of each phase."""
    return [[_held(moment, stream) for moment in kept] for kept in recorder.moments.values()]


def _held(moment: Moment, stream: str) -> Terms:
    if stream != COMPUTE:
        return moment.streams.get(stream, {})
    total = moment.blocks
    for terms in moment.streams.values():
        total = added(total, terms, -1)
    return total
