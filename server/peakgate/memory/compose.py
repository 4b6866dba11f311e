"""Puts a walked step and its resident states together: peaks, ledger, timeline of one rank."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.memory.allocator import replay, smallest_cap
from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.job import Job
from peakgate.memory.model import Described
from peakgate.memory.optimizers import ROWS
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import LedgerLine, Prediction, TimelinePoint
from peakgate.memory.profiles import profile_of
from peakgate.memory.ratios import ratios_of
from peakgate.memory.resolve import Resolved, Resolver, resolve
from peakgate.memory.recipes import formats_of
from peakgate.memory.runtime import CONTEXT_BYTES, communication_bytes
from peakgate.memory.step import Walk, census, saved_bytes_per_layer, walk

PHASES = ("forward", "loss", "backward", "optimizer")

ITEMS = {
    "activations": "saved for the backward pass", "logits": "logits and loss", "gradients": "gradients",
    "temporaries": "temporaries of kernels", "communication": "gathered weights and gradient buckets",
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
    resident = resident_lines(plan, walked)
    base = sum(line.bytes for line in resident)
    workspace = sum(line.bytes for line in resident if "workspace" in line.item)
    peaks = {phase: base + walked.highs[phase].blocks for phase in PHASES if phase in walked.highs}
    phase = max(peaks, key=lambda name: peaks[name])
    allocated = peaks[phase]
    reserved, required = _replayed(plan, stage, resident, allocated) if exact else _by_ratio(plan, allocated)
    outside = outside_of(plan)
    total, trained = _whole_model(plan)
    return Prediction(
        live_bytes=base - workspace + max(walked.highs[p].live for p in peaks), allocated_bytes=allocated, reserved_bytes=reserved,
        device_bytes=reserved + outside.total, required_bytes=required + outside.total, host_bytes=_host_bytes(plan, walked),
        parameters=total, trainable_parameters=trained, saved_activation_bytes_per_layer=saved_bytes_per_layer(plan),
        peak_phase=phase, phase_peaks=_in_order(plan, walked, peaks, required - allocated + outside.total),
        pipeline_stage=stage.number, rank_reason=_why(plan, stage),
        ledger=ledger(resident, walked, phase, reserved - allocated, outside),
        timeline=tuple(TimelinePoint(phase=p.phase, label=p.label, allocated_bytes=base + p.blocks) for p in walked.points),
        group=group_of(plan), undecided=described.undecided + resolved.undecided, states_bytes=walked.states.resident,
        assumptions=described.assumptions + resolved.assumptions,
    )


def resident_lines(plan: Plan, walked: Walk) -> list[LedgerLine]:
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
    ]
    return [line for line in lines if line.bytes]


def ledger(resident: list[LedgerLine], walked: Walk, phase: str, fragmentation: int, outside: Outside) -> tuple[LedgerLine, ...]:
    """The peak moment, line by line; it sums to the device bytes."""
    moving = [LedgerLine(category=key, item=ITEMS[key], bytes=size) for key, size in walked.highs[phase].by.items() if size]
    rest = [
        LedgerLine(category="fragmentation", item="caching allocator", bytes=fragmentation),
        LedgerLine(category="runtime", item="CUDA context and libraries", bytes=outside.context),
        LedgerLine(category="runtime", item="NCCL buffers", bytes=outside.communication),
    ]
    return (*resident, *_counted(moving, walked, phase), *(line for line in rest if line.bytes))


def _counted(moving: list[LedgerLine], walked: Walk, phase: str) -> list[LedgerLine]:
    """Block rounding of resident and walked parts never disagrees: the walk's categories sum to its blocks."""
    short = walked.highs[phase].blocks - sum(line.bytes for line in moving)
    if short:
        moving = [*moving, LedgerLine(category="temporaries", item="block rounding", bytes=short)]
    return moving


def outside_of(plan: Plan) -> Outside:
    """Context and communication, unless the profile counts neither."""
    if not profile_of(plan.profile).context:
        return Outside(context=0, communication=0)
    return Outside(context=CONTEXT_BYTES, communication=communication_bytes(plan.degrees))


def group_of(plan: Plan) -> str:
    """The calibration group: framework, sharding, compute format."""
    return f"{plan.framework}/{plan.degrees.sharding}/{plan.formats.compute}"


def _by_ratio(plan: Plan, allocated: int) -> tuple[int, int]:
    if not profile_of(plan.profile).rounds:
        return allocated, allocated
    reserved, required = ratios_of(plan)
    return int(allocated * reserved), int(allocated * required)


def _replayed(plan: Plan, stage: Stage, resident: list[LedgerLine], allocated: int) -> tuple[int, int]:
    """Reserved and required bytes from a replay of two steps; with expandable segments by ratio (their rules are not replayed)."""
    if not profile_of(plan.profile).rounds or plan.expandable_segments:
        return _by_ratio(plan, allocated)
    recorded = walk(plan, stage, record=True)
    sizes = resident_sizes(plan, recorded, resident)
    steps = [list(recorded.events)] * 2
    seen = replay(sizes, steps)
    return max(seen.reserved_bytes, allocated), max(allocated, smallest_cap(sizes, steps, seen.allocated_bytes, seen.reserved_bytes))


def resident_sizes(plan: Plan, walked: Walk, resident: list[LedgerLine]) -> list[int]:
    """One size for each weight and each of its states, as the allocator sees them; the rest line by line."""
    total = {line.category: line.bytes for line in resident if line.category in ("parameters", "master_weights", "optimizer_states", "gradients")}
    elements = max(1, sum(w.elements * w.count for w in walked.weights))
    trained = max(1, sum(w.elements * w.count for w in walked.weights if w.trainable))
    sizes: list[int] = []
    for weight in walked.weights:
        for _ in range(weight.count):
            sizes.append(total.get("parameters", 0) * weight.elements // elements)
            if weight.trainable:
                sizes += [total[key] * weight.elements // trained for key in ("master_weights", "gradients") if key in total]
                copies = max(1, round(ROWS[plan.optimizer].copies))
                sizes += [total.get("optimizer_states", 0) * weight.elements // trained // copies] * copies
    return [*sizes, *(line.bytes for line in resident if line.category not in total)]


def _whole_model(plan: Plan) -> tuple[int, int]:
    """(all, trained) elements of the unsharded model."""
    one = replace(plan, degrees=replace(plan.degrees, tensor=1, pipeline=1, expert=1, sharding="none", stage_layers=(), sequence_parallel=False))
    (stage,) = stages(one.degrees, one.architecture.dims["L"], 1)
    counted = census(one, stage)
    return counted.total, counted.trainable


def _in_order(plan: Plan, walked: Walk, peaks: dict[str, int], more: int) -> tuple[tuple[str, int], ...]:
    """Required bytes of each phase as a run meets them: the first step is without optimizer states that appear in it."""
    states = walked.states
    late = states.optimizer_states if states.lazy_optimizer else 0
    first = [(phase, peaks[phase] - (late if phase != "optimizer" else 0) + more) for phase in PHASES if phase in peaks]
    steady = [(phase, peaks[phase] + more) for phase in PHASES if phase in peaks]
    return (("load", states.parameters + more), *first, *steady)


def _why(plan: Plan, stage: Stage) -> str:
    if plan.degrees.pipeline == 1:
        return "every rank holds the same" if plan.degrees.world > 1 else "the only GPU"
    if stage.heads:
        return "the last stage holds the logits"
    held = f"it holds {stage.in_flight} micro-batches in flight"
    return f"the first stage: embedding, and {held}" if stage.embeds else f"stage {stage.number}: {held}"


def _host_bytes(plan: Plan, walked: Walk) -> int:
    """Host memory a node of offloaded optimizer states: three float32 copies for Adam (deepspeed ops/adam/cpu_adam.py)."""
    if not plan.offload_optimizer:
        return 0
    shard = plan.degrees.shard if plan.degrees.sharding != "none" else 1
    return -(-walked.states.trainable // shard) * 12 * min(plan.degrees.world, 8)


def states_only(job: Job, described: Described, world: int) -> Prediction:
    """What can be said without a micro-batch, a sequence or a model: the states alone."""
    if described.architecture is None:
        lines, total, trained, assumptions = _bare_states(job, described.parameters)
        group = f"{job.framework.name or 'huggingface'}/none/unknown"
        undecided = described.undecided
    else:
        from peakgate.memory.model import describe  # noqa: F401 - the architecture is known here

        small = replace(job, batch=replace(job.batch, micro_batch_size=1, sequence_length=8))
        resolved = resolve(small, described.architecture, world)
        plan = resolved.plan
        stage = stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation)[0]
        walked = walk(plan, stage)
        lines = [line for line in resident_lines(plan, walked) if line.category not in ("activations", "temporaries", "communication")]
        total, trained = _whole_model(plan)
        group, assumptions = group_of(plan), resolved.assumptions
        what = "batch.micro_batch_size" if not job.batch.micro_batch_size else "batch.sequence_length"
        undecided = (f"{what} is not stated: only the model states are counted", *described.undecided, *resolved.undecided)
    size = sum(line.bytes for line in lines)
    return Prediction(
        live_bytes=size, allocated_bytes=size, reserved_bytes=size, device_bytes=size, required_bytes=size, host_bytes=0, parameters=total,
        trainable_parameters=trained, saved_activation_bytes_per_layer=0, peak_phase="load", phase_peaks=(("load", size),), pipeline_stage=0,
        rank_reason="model states alone", ledger=tuple(lines), timeline=(), group=group, undecided=undecided, states_bytes=size, assumptions=assumptions,
    )


def _bare_states(job: Job, parameters: int) -> tuple[list[LedgerLine], int, int, tuple[str, ...]]:
    """States of a parameter count by the recipe's formats, unsharded unless a shard degree is stated."""
    framework = job.framework.name or "huggingface"
    fill = Resolver(framework, [])
    formats = formats_of(job.precision, fill.text(job.precision.recipe, "precision.recipe"))
    optimizer = fill.text(job.optimizer.name, "optimizer.name")
    shard = job.parallelism.shard_degree or 1
    share = -(-parameters // shard)
    sizes = {
        "parameters": share * ITEMSIZE[formats.parameters], "gradients": share * ITEMSIZE[formats.gradients],
        "master_weights": share * ITEMSIZE[formats.master_weights],
        "optimizer_states": int(share * ROWS[optimizer].copies * (ROWS[optimizer].itemsize or ITEMSIZE[formats.optimizer_states])),
    }
    lines = [LedgerLine(category=key, item=key.replace("_", " "), bytes=size) for key, size in sizes.items() if size]
    return lines, parameters, parameters, tuple(fill.assumptions)
