"""What can be said of a job without a micro-batch, a sequence or a model: its states alone."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.compose import group_of, whole_model
from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.earlier import versions_of
from peakgate.memory.fill import Resolver
from peakgate.memory.job import Job
from peakgate.memory.model import Described
from peakgate.memory.not_counted.model import of_description
from peakgate.memory.not_counted.unread import of_unread
from peakgate.memory.optimizers import ROWS
from peakgate.memory.pipeline import stages
from peakgate.memory.prediction import LedgerLine, Prediction
from peakgate.memory.recipes import formats_of
from peakgate.memory.resident import resident_lines
from peakgate.memory.resolve import resolve
from peakgate.memory.step import walk


def states_only(job: Job, described: Described, world: int) -> Prediction:
    """What can be said without a micro-batch, a sequence or a model: the states alone."""
    if described.architecture is None:
        lines, total, trained, assumptions = _bare_states(job, described.parameters)
        group = f"{job.framework.name or 'huggingface'}/none/unknown"
        undecided = (*of_unread(job), *described.undecided)
    else:
        small = replace(job, batch=replace(job.batch, micro_batch_size=1, sequence_length=8))
        resolved = resolve(small, described.architecture, world)
        plan = resolved.plan
        stage = stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation)[0]
        walked = walk(plan, stage)
        resident = resident_lines(plan, stage, walked.states, walked.weights, walked.input_bytes)
        lines = [line for line in resident if line.category not in ("activations", "temporaries", "communication")]
        total, trained = whole_model(plan)
        group, assumptions = group_of(plan), resolved.assumptions
        what = "batch.micro_batch_size" if not job.batch.micro_batch_size else "batch.sequence_length"
        undecided = (f"{what} is not stated: only the model states are counted", *of_description(plan, described), *resolved.undecided)
    size = sum(line.bytes for line in lines)
    return Prediction(
        live_bytes=size,
        allocated_bytes=size,
        reserved_bytes=size,
        device_bytes=size,
        required_bytes=size,
        host_bytes=0,
        parameters=total,
        trainable_parameters=trained,
        saved_activation_bytes_per_layer=0,
        peak_phase="load",
        phase_peaks=(("load", size),),
        pipeline_stage=0,
        rank_reason="model states alone",
        ledger=tuple(lines),
        timeline=(),
        group=group,
        undecided=undecided,
        states_bytes=size,
        assumptions=assumptions,
    )


def _bare_states(job: Job, parameters: int) -> tuple[list[LedgerLine], int, int, tuple[str, ...]]:
    """States of a parameter count by the recipe's formats, unsharded unless a shard degree is stated."""
    framework = job.framework.name or "huggingface"
    fill = Resolver(framework, [], versions_of(framework, job.framework))
    formats = formats_of(job.precision, fill.text(job.precision.recipe, "precision.recipe"))
    optimizer = fill.text(job.optimizer.name, "optimizer.name")
    shard = job.parallelism.shard_degree or 1
    share = -(-parameters // shard)
    sizes = {
        "parameters": share * ITEMSIZE[formats.parameters],
        "gradients": share * ITEMSIZE[formats.gradients],
        "master_weights": share * ITEMSIZE[formats.master_weights],
        "optimizer_states": int(share * ROWS[optimizer].copies * (ROWS[optimizer].itemsize or ITEMSIZE[formats.optimizer_states])),
    }
    lines = [LedgerLine(category=key, item=key.replace("_", " "), bytes=size) for key, size in sizes.items() if size]
    return lines, parameters, parameters, tuple(fill.assumptions)
