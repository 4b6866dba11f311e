"""Puts a walked step and its resident states together: peaks, ledger, timeline of one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from peakgate.memory.by_ratio import by_ratio
from peakgate.memory.choices import BEFORE_STEP, PHASES
from peakgate.memory.counts import Counts
from peakgate.memory.host_memory import host_bytes
from peakgate.memory.model import Described
from peakgate.memory.not_counted.model import of_description
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Degrees, Plan
from peakgate.memory.prediction import LedgerLine, Prediction, Timeline, TimelinePoint
from peakgate.memory.profiles import profile_of
from peakgate.memory.reserved import replayed
from peakgate.memory.resolve import Resolved
from peakgate.memory.runtime import communication_bytes
from peakgate.memory.states import States
from peakgate.memory.weighing import census

ITEMS = {
    "activations": "saved for the backward pass",
    "logits": "logits and loss",
    "gradients": "gradients",
    "temporaries": "temporaries of kernels",
    "communication": "gathered weights and gradient buckets",
    "optimizer_states": "states made in this step",
}


OUTSIDE_STEP = ("evaluate", "save")
"""Phases that come after whole steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a process takes outside the allocator."""

    context: int
    communication: int

    @property
    def total(self) -> int:
        """Bytes of both."""
        return self.context + self.communication


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """What an answer says of one rank whatever its micro-batch and its sequences: states, places, words."""

    plan: Plan
    stage: Stage
    states: States
    late: int
    outside: Outside
    host_bytes: int
    parameters: tuple[int, int]
    why: str
    group: str
    undecided: tuple[str, ...]
    assumptions: tuple[str, ...]


def rank_of(plan: Plan, stage: Stage, states: States, resolved: Resolved, described: Described) -> Rank:
    """The rank of a pipeline stage."""
    total, trained = whole_model(plan)
    return Rank(
        plan=plan,
        stage=stage,
        states=states,
        late=late_states(plan, states),
        outside=outside_of(plan),
        host_bytes=host_bytes(plan, states),
        parameters=(total, trained),
        why=_why(plan, stage),
        group=group_of(plan),
        undecided=(*of_description(plan, described), *resolved.undecided, *_no_adapters(plan, trained)),
        assumptions=described.assumptions + resolved.assumptions,
    )


def compose(rank: Rank, counts: Counts, *, exact: bool) -> Prediction:
    """The prediction for one rank whose step comes to these counts. `exact`: reserved and required from a replay."""
    plan, resident = rank.plan, counts.resident
    base = whole = sum(line.bytes for line in resident)
    workspace = sum(line.bytes for line in resident if "workspace" in line.item)
    peaks = {phase: base + blocks - (rank.late if phase in BEFORE_STEP else 0) for phase, blocks in counts.blocks.items()}
    phase = max(reversed(peaks), key=peaks.__getitem__)  # equal ones: the latest, as seed A names it
    if rank.late and phase in BEFORE_STEP:
        base, resident = base - rank.late, [line for line in resident if line.category != "optimizer_states"]
    allocated = peaks[phase]
    replays = exact and profile_of(plan.profile).rounds
    reserved, required = replayed(plan, rank.stage, resident, allocated) if replays else by_ratio(plan, counts, base, allocated)
    outside = rank.outside
    return Prediction(
        live_bytes=whole - workspace + max(counts.live[0] - rank.late, counts.live[1]),
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        device_bytes=reserved + outside.total,
        required_bytes=required + outside.total,
        host_bytes=rank.host_bytes,
        parameters=rank.parameters[0],
        trainable_parameters=rank.parameters[1],
        saved_activation_bytes_per_layer=counts.saved,
        peak_phase=phase,
        phase_peaks=in_order(rank.states, peaks, required - allocated + outside.total, beside_bytes(plan, resident), rank.late),
        pipeline_stage=rank.stage.number,
        rank_reason=rank.why,
        ledger=ledger(resident, counts.by(phase), reserved - allocated, outside),
        timeline=Timeline(lambda: _points(counts, whole, rank.late)),
        group=rank.group,
        undecided=rank.undecided,
        states_bytes=rank.states.resident - rank.states.gradients * plan.in_backward + beside_bytes(plan, resident),
        assumptions=rank.assumptions,
    )


def _no_adapters(plan: Plan, trained: int) -> tuple[str, ...]:
    """peft refuses targets that no module has (tuners/tuners_utils.py: "Target modules … not found in the base model")."""
    if trained:
        return ()
    why = "frozen: all of the model" if plan.lora is None else "lora.targets: no linear layer of this block has such a name"
    return (f"{why}, so nothing is trained",)


def beside_bytes(plan: Plan, resident: Sequence[LedgerLine]) -> int:
    """States of the method's other models."""
    names = tuple(f"{each.role} model:" for each in plan.companions)
    return sum(line.bytes for line in resident if line.item.startswith(names)) if names else 0


def late_states(plan: Plan, states: States) -> int:
    """Optimizer states that the largest forward and backward pass does not meet: it is the first, and they appear at the first step."""
    return states.optimizer_states if profile_of(plan.profile).longest_first and states.lazy_optimizer else 0


def ledger(resident: Sequence[LedgerLine], by: Mapping[str, int], fragmentation: int, outside: Outside) -> tuple[LedgerLine, ...]:
    """The peak moment, line by line; it sums to the device bytes."""
    moving = [LedgerLine(category=key, item=ITEMS[key], bytes=size) for key, size in by.items() if size]
    rest = [
        LedgerLine(category="fragmentation", item="caching allocator", bytes=fragmentation),
        LedgerLine(category="runtime", item="CUDA context and libraries", bytes=outside.context),
        LedgerLine(category="runtime", item="NCCL buffers", bytes=outside.communication),
    ]
    return (*resident, *moving, *(line for line in rest if line.bytes))


def outside_of(plan: Plan) -> Outside:
    """Context and communication, unless the profile counts neither."""
    if not profile_of(plan.profile).context:
        return Outside(context=0, communication=0)
    return Outside(context=plan.context_bytes, communication=communication_bytes(plan.degrees))


def group_of(plan: Plan) -> str:
    """The calibration group: framework, sharding, compute format."""
    return f"{plan.framework}/{plan.degrees.sharding}/{plan.formats.compute}"


def whole_model(plan: Plan) -> tuple[int, int]:
    """(all, trained) elements of the unsharded model."""
    whole = replace(plan, degrees=Degrees(), vocabulary_multiple=0)
    counted = census(whole, stages(whole.degrees, plan.architecture.dims["L"], 1)[0])
    return counted.total, counted.trainable


def _points(counts: Counts, resident: int, late: int) -> list[TimelinePoint]:
    return [
        TimelinePoint(phase=p.phase, label=p.label, allocated_bytes=resident - (late if p.phase in BEFORE_STEP else 0) + p.blocks)
        for p in counts.points()
    ]


def in_order(states: States, peaks: dict[str, int], more: int, beside: int = 0, late: int = 0) -> tuple[tuple[str, int], ...]:
    """Required bytes of each phase as a run meets them: the first step is without optimizer states that appear in it (`late`: without
    which `peaks` are already)."""
    late = states.optimizer_states - late if states.lazy_optimizer else 0
    step = [phase for phase in PHASES if phase in peaks and phase not in OUTSIDE_STEP]
    first = [(phase, peaks[phase] - (late if phase != "optimizer" else 0) + more) for phase in step]
    steady = [(phase, peaks[phase] + more) for phase in PHASES if phase in peaks]
    return (("load", states.parameters + beside + more), *first, *steady)


def _why(plan: Plan, stage: Stage) -> str:
    if plan.degrees.pipeline == 1:
        return "every rank holds the same" if plan.degrees.world > 1 else "the only GPU"
    unit = "micro-batches" if stage.chunks == 1 else "chunks of micro-batches"
    held = f"it holds {stage.in_flight} {unit} in flight"
    if stage.waiting:
        held += f", {stage.waiting} of them waiting for their weight gradients"
    if stage.heads:
        return f"the last stage holds the logits, and {held}" if stage.waiting else "the last stage holds the logits"
    if plan.degrees.stage_layers:
        held = f"it has {stage.layers} layers, and {held}"
    return f"the first stage: embedding, and {held}" if stage.embeds else f"stage {stage.number}: {held}"
