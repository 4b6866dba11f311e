"""Puts a walked step and its resident states together: peaks, ledger, timeline of one rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from peakgate.memory.meter import High
from peakgate.memory.model import Described, stand_in_note
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Degrees, Plan
from peakgate.memory.prediction import LedgerLine, Prediction, TimelinePoint
from peakgate.memory.profiles import profile_of
from peakgate.memory.reserved import by_ratio, replayed
from peakgate.memory.resolve import Resolved
from peakgate.memory.runtime import CONTEXT_BYTES, communication_bytes
from peakgate.memory.states import States
from peakgate.memory.step import PHASES, Walk, census, saved_bytes_per_layer, walk

ITEMS = {
    "activations": "saved for the backward pass",
    "logits": "logits and loss",
    "gradients": "gradients",
    "temporaries": "temporaries of kernels",
    "communication": "gathered weights and gradient buckets",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a process takes outside the allocator."""

    context: int
    communication: int

    @property
    def total(self) -> int:
        """Bytes of both."""
        return self.context + self.communication


def compose(plan: Plan, stage: Stage, resolved: Resolved, described: Described, *, exact: bool) -> Prediction:
    """The prediction for one rank of a pipeline stage."""
    walked = walk(plan, stage)
    resident = resident_lines(plan, walked, stage)
    base = sum(line.bytes for line in resident)
    workspace = sum(line.bytes for line in resident if "workspace" in line.item)
    late = late_states(plan, walked)
    peaks = {phase: base + walked.highs[phase].blocks - (late if phase != "optimizer" else 0) for phase in PHASES if phase in walked.highs}
    phase = max(reversed(peaks), key=lambda name: peaks[name])  # equal ones: the latest, as seed A names it
    if late and phase != "optimizer":
        base, resident = base - late, [line for line in resident if line.category != "optimizer_states"]
    allocated = peaks[phase]
    replays = exact and profile_of(plan.profile).rounds
    reserved, required = replayed(plan, stage, resident, allocated) if replays else by_ratio(plan, stage, walked, base, allocated)
    outside = outside_of(plan)
    total, trained = whole_model(plan)
    return Prediction(
        live_bytes=base - workspace + max(walked.highs[p].live for p in peaks),
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        device_bytes=reserved + outside.total,
        required_bytes=required + outside.total,
        host_bytes=_host_bytes(plan, walked),
        parameters=total,
        trainable_parameters=trained,
        saved_activation_bytes_per_layer=saved_bytes_per_layer(plan),
        peak_phase=phase,
        phase_peaks=in_order(walked.states, peaks, required - allocated + outside.total),
        pipeline_stage=stage.number,
        rank_reason=_why(plan, stage),
        ledger=ledger(resident, walked.highs[phase], reserved - allocated, outside),
        timeline=tuple(TimelinePoint(phase=p.phase, label=p.label, allocated_bytes=base + p.blocks) for p in walked.points),
        group=group_of(plan),
        undecided=of_model(plan, described) + resolved.undecided + _no_adapters(plan, trained),
        states_bytes=walked.states.resident,
        assumptions=described.assumptions + resolved.assumptions,
    )


def of_model(plan: Plan, described: Described) -> tuple[str, ...]:
    """What cannot be counted of the model; no family stands in where the framework has modules of its own for the block."""
    arch = plan.architecture
    own = arch.block in profile_of(plan.profile).roles
    return tuple(note for note in described.undecided if not own or note != stand_in_note(arch.block, arch.stand_in))


def _no_adapters(plan: Plan, trained: int) -> tuple[str, ...]:
    """peft refuses targets that no module has (tuners/tuners_utils.py: "Target modules … not found in the base model")."""
    return () if trained or plan.lora is None else ("lora.targets: no linear layer of this block has such a name, so nothing is trained",)


def resident_lines(plan: Plan, walked: Walk, stage: Stage) -> list[LedgerLine]:
    """What lives all step long."""
    states, profile = walked.states, profile_of(plan.profile)
    buckets = 0
    if plan.degrees.sharding == "ddp" and not plan.formats.resident_gradients and plan.profile != "textbook":
        buckets = states.trained_bytes  # torch/nn/parallel/distributed.py: buckets as large as all gradients, from construction on
    lines = [
        LedgerLine(category="parameters", item="weights", bytes=states.parameters),
        LedgerLine(category="gradients", item="gradient buffers", bytes=0 if plan.in_backward else states.gradients),
        LedgerLine(category="master_weights", item="master weights", bytes=states.master_weights),
        LedgerLine(category="optimizer_states", item=f"{plan.optimizer} states", bytes=states.optimizer_states),
        LedgerLine(category="activations", item="input batch and position tables", bytes=walked.input_bytes),
        LedgerLine(category="temporaries", item="cuBLAS workspace", bytes=plan.workspace_bytes * profile.workspaces),
        LedgerLine(category="communication", item="DDP gradient buckets", bytes=buckets),
        *(profile.resident(plan, stage, walked.weights) if profile.resident else ()),
    ]
    return [line for line in lines if line.bytes]


def late_states(plan: Plan, walked: Walk) -> int:
    """Optimizer states that the largest forward and backward pass does not meet: it is the first, and they appear at the first step."""
    first = profile_of(plan.profile).longest_first and walked.states.lazy_optimizer
    return walked.states.optimizer_states if first else 0


def ledger(resident: list[LedgerLine], peak: High, fragmentation: int, outside: Outside) -> tuple[LedgerLine, ...]:
    """The peak moment, line by line; it sums to the device bytes."""
    moving = [LedgerLine(category=key, item=ITEMS[key], bytes=size) for key, size in peak.by.items() if size]
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
    return Outside(context=CONTEXT_BYTES, communication=communication_bytes(plan.degrees))


def group_of(plan: Plan) -> str:
    """The calibration group: framework, sharding, compute format."""
    return f"{plan.framework}/{plan.degrees.sharding}/{plan.formats.compute}"


def whole_model(plan: Plan) -> tuple[int, int]:
    """(all, trained) elements of the unsharded model."""
    sequence = plan.sequence if plan.architecture.traits.get("inputs") == "sound" else 8  # a table of positions may be as long
    small = replace(plan, micro_batch=1, sequence=sequence, target=min(plan.target, 8), vocabulary_multiple=0)
    return _counted(replace(small, accumulation=1, checkpointing="none", loss="full", degrees=Degrees()))


@lru_cache(maxsize=512)
def _counted(plan: Plan) -> tuple[int, int]:
    (stage,) = stages(plan.degrees, plan.architecture.dims["L"], 1)
    counted = census(plan, stage)
    return counted.total, counted.trainable


def in_order(states: States, peaks: dict[str, int], more: int) -> tuple[tuple[str, int], ...]:
    """Required bytes of each phase as a run meets them: the first step is without optimizer states that appear in it."""
    late = states.optimizer_states if states.lazy_optimizer else 0
    first = [(phase, peaks[phase] - (late if phase != "optimizer" else 0) + more) for phase in PHASES if phase in peaks]
    steady = [(phase, peaks[phase] + more) for phase in PHASES if phase in peaks]
    return (("load", states.parameters + more), *first, *steady)


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


def _host_bytes(plan: Plan, walked: Walk) -> int:
    """Host memory a node of offloaded optimizer states: three float32 copies for Adam (deepspeed ops/adam/cpu_adam.py)."""
    if not plan.offload_optimizer:
        return 0
    return walked.states.owned * 12 * min(plan.degrees.world, plan.node_gpus)
