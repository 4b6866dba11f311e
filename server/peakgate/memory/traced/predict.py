"""A traced step as a prediction: its allocations in blocks, its order through the allocator's replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from peakgate.memory.allocator import block_bytes
from peakgate.memory.capacity import capability_of
from peakgate.memory.compose import Outside, in_order, ledger
from peakgate.memory.job import Job
from peakgate.memory.meter import WALKED, Event, High, Meter, Point
from peakgate.memory.methods.rows import PLAIN
from peakgate.memory.not_counted.unread import of_unread
from peakgate.memory.plan import Degrees
from peakgate.memory.prediction import LedgerLine, Prediction, TimelinePoint
from peakgate.memory.replay import Script, smallest_cap
from peakgate.memory.replay import play as play_script
from peakgate.memory.runtime import communication_bytes, context_bytes, workspace_bytes
from peakgate.memory.states import States
from peakgate.memory.traced.measured import contradictions_of_run, recipe_dtype
from peakgate.memory.traced.read import PHASES, Profile, Sized, events_of, read, resident_of

RESIDENT_ITEMS = {
    "parameters": ("parameters", "weights"),
    "optimizer_states": ("optimizer_states", "optimizer states"),
    "buffers": ("activations", "buffers"),
    "inputs": ("activations", "input batch"),
    "workspaces": ("temporaries", "library workspace"),
    "unknown": ("temporaries", "allocated before the recording, of no known kind"),
}
"""Kind of a resident allocation -> category and item of the ledger."""

MOVES = (*WALKED, "optimizer_states")
"""Categories of a step's allocations: a recorded first step makes the optimizer's states."""

THREADS = 2
"""One cuBLAS workspace for each thread that runs products: forward and autograd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A step's highest moments, and the events that a replay takes."""

    highs: dict[str, High]
    points: tuple[Point, ...]
    events: tuple[Event, ...]
    streams: Mapping[int, str]


def predict_profile(job: Job, world: int) -> Prediction:
    """Point figures of a traced step on each rank; the job's profile is one that `check` has passed."""
    profile = read(job.model.profile or {})
    resident, played = resident_of(profile), play(profile)
    lines = _lines(job, profile, resident, world)
    base = sum(line.bytes for line in lines)
    peaks = {phase: base + played.highs[phase].blocks for phase in PHASES if phase in played.highs}
    phase = max(reversed(peaks), key=lambda name: peaks[name])
    outside = Outside(context=context_bytes(job.framework, capability_of(job)), communication=communication_bytes(_degrees(world)))
    extra = tuple(line.bytes for line in lines if line.item.startswith(("cuBLAS", "DDP")))
    reserved, required = (max(each, peaks[phase]) for each in _replayed(profile, extra))
    if profile.measured and profile.measured.reserved_bytes:
        reserved = max(profile.measured.reserved_bytes, peaks[phase])
        required = min(required, reserved)
    states = _states(lines, profile)
    exact = sum(each.nbytes for each in resident) + sum(line.bytes for line in lines if line.item.startswith("DDP"))
    return Prediction(
        live_bytes=exact + max(high.live for high in played.highs.values()),
        allocated_bytes=peaks[phase],
        reserved_bytes=reserved,
        device_bytes=reserved + outside.total,
        required_bytes=required + outside.total,
        host_bytes=0,
        parameters=profile.parameters,
        trainable_parameters=profile.trainable_parameters,
        saved_activation_bytes_per_layer=profile.saved_bytes,
        peak_phase=phase,
        phase_peaks=in_order(states, peaks, required - peaks[phase] + outside.total),
        pipeline_stage=0,
        rank_reason="every rank holds the same" if world > 1 else "the only GPU",
        ledger=ledger(lines, played.highs[phase].by, reserved - peaks[phase], outside),
        timeline=tuple(TimelinePoint(phase=p.phase, label=p.label, allocated_bytes=base + p.blocks) for p in played.points),
        group=f"profile/{'ddp' if world > 1 else 'none'}/{profile.dtype or 'snapshot'}",
        undecided=(*_contradictions(job, profile, world), *of_unread(job)),
        states_bytes=states.resident,
        assumptions=(
            f"model.profile: a step of {profile.source}: batch {profile.batch_size or 'unknown'}, {profile.optimizer or 'unknown'}",
        ),
    )


def play(profile: Profile) -> Played:
    """Counts the step."""
    meter = Meter(block_bytes, events=[], by=dict.fromkeys(MOVES, 0), high_by=dict.fromkeys(MOVES, 0))
    numbers: list[tuple[int, Sized]] = []
    for word in events_of(profile):
        if isinstance(word, str):
            if meter.phase:
                meter.mark_high(meter.phase)
            meter.enter(word)
        elif isinstance(word, Sized):
            counted = word if word.category in meter.by else replace(word, category="temporaries")
            numbers.append((meter.add(word.nbytes, block_bytes(word.nbytes), counted.category, word.stream), counted))
        else:
            number, freed = numbers[word.place]
            meter.sub(freed.nbytes, block_bytes(freed.nbytes), freed.category, number, freed.stream)
    meter.mark_high(meter.phase)
    meter.enter("end")
    return Played(highs=meter.highs, points=tuple(meter.points), events=tuple(meter.events or ()), streams=meter.streams)


@lru_cache(maxsize=64)
def _replayed(profile: Profile, extra: tuple[int, ...]) -> tuple[int, int]:
    """(reserved, required) bytes."""
    sizes = [*(each.nbytes for each in resident_of(profile)), *extra]
    played = play(profile)
    expandable = profile.measured is not None and profile.measured.expandable
    script = Script(resident=sizes, steps=[played.events] * 2, streams=played.streams, expandable=expandable)
    seen = play_script(script)
    return seen.reserved_bytes, smallest_cap(script, seen)


def _lines(job: Job, profile: Profile, resident: tuple[Sized, ...], world: int) -> list[LedgerLine]:
    """What lives all step long, in blocks; what a trace does not see is added."""
    lines = [
        LedgerLine(category=category, item=item, bytes=sum(block_bytes(each.nbytes) for each in resident if each.category == kind))
        for kind, (category, item) in RESIDENT_ITEMS.items()
    ]
    if profile.measured:  # a real run has them among its allocations
        return [line for line in lines if line.bytes]
    lines.append(LedgerLine(category="temporaries", item="cuBLAS workspace", bytes=THREADS * workspace_bytes(capability_of(job))))
    if world > 1:
        lines.append(LedgerLine(category="communication", item="DDP gradient buckets", bytes=profile.gradient_bytes))
    return [line for line in lines if line.bytes]


def _states(lines: list[LedgerLine], profile: Profile) -> States:
    by = {line.category: line.bytes for line in lines if line.category in ("parameters", "optimizer_states")}
    return States(
        parameters=by.get("parameters", 0),
        stored=by.get("parameters", 0),
        gradients=0,
        master_weights=0,
        optimizer_states=by.get("optimizer_states", 0),
        elements=profile.parameters,
        trainable=profile.trainable_parameters,
        trained_bytes=profile.gradient_bytes,
        owned=profile.trainable_parameters,
        largest=0,
    )


def _degrees(world: int) -> Degrees:
    return Degrees(world=world, data=world, sharding="ddp" if world > 1 else "none")


def _contradictions(job: Job, profile: Profile, world: int) -> tuple[str, ...]:
    return contradictions_of_run(job, profile, profile.measured, world) if profile.measured else contradictions(job, profile)


def contradictions(job: Job, profile: Profile) -> tuple[str, ...]:
    """What the job states otherwise than the traced step had it: the answer is then UNDECIDED."""
    stated = {
        "batch.micro_batch_size": (job.batch.micro_batch_size or None, profile.batch_size),
        "batch.gradient_accumulation_steps": (_several(job.batch.gradient_accumulation_steps), _several(profile.accumulation)),
        "optimizer.name": (job.optimizer.name, profile.optimizer),
        "optimizer.implementation": (job.optimizer.implementation, profile.implementation),
        "precision.recipe": (recipe_dtype(job), profile.dtype),
        "parallelism.sharding": (job.parallelism.sharding or None, "ddp" if job.parallelism.sharding == "ddp" else "none"),
    }
    differing = {path: pair for path, pair in stated.items() if pair[0] not in (None, pair[1])}
    out = [f"{path}: {said} is stated, the profile was traced with {was}" for path, (said, was) in differing.items()]
    degrees = (job.parallelism.tensor, job.parallelism.pipeline, job.parallelism.context, job.parallelism.expert)
    if max(each or 1 for each in degrees) > 1:
        out.append("parallelism: a traced model is counted whole on each rank")
    if job.lora or job.checkpointing.mode not in (None, "none") or job.frozen:
        out.append("lora, checkpointing, frozen: they are part of the traced model; leave them out of the job")
    if job.method.name not in (None, *PLAIN) or (job.evaluate.micro_batch_size or 0) > 0 or job.save.full_state_dict:
        out.append("method, evaluate, save: only the traced step is counted")
    return tuple(out)


def _several(steps: int | None) -> str | None:
    return None if steps is None else "several" if steps > 1 else "one"
