"""Phases of a run outside the training step: evaluation, generation beside a sleeping engine, saving.

Gradients are gone by then: the trainer clears them behind each step (transformers trainer.py: zero_grad, then _maybe_log_save_evaluate).
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.choices import HUGGING_FACE
from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.inference import evaluate
from peakgate.memory.inputs import input_bytes
from peakgate.memory.meter import WALKED, High
from peakgate.memory.methods.outputs import cache_bytes
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import FSDP, FSDP2, Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.stacks import sizes_of
from peakgate.memory.step import Step, meter_of
from peakgate.memory.weighing import census

GATHERED = (*FSDP, "zero3")
"""Shardings of which a full state dict gathers weights; under the others each rank has them."""


def other_phases(plan: Plan, stage: Stage, kept_gradient_bytes: int) -> dict[str, High]:
    """Highest moments beyond the resident states, by phase; `kept_gradient_bytes`: of gradients that a step leaves behind."""
    out: dict[str, High] = {}
    if plan.evaluation_batch:
        out["evaluate"] = _evaluated(plan, stage, kept_gradient_bytes)
    if plan.engine_bytes and plan.engine_sleeps:
        generating = _one_moment(plan.engine_bytes, "temporaries", kept_gradient_bytes)
        out["evaluate"] = max(generating, out.get("evaluate", generating), key=lambda high: high.blocks)
    if plan.saves_whole:
        out["save"] = _one_moment(saving_bytes(plan, stage), "communication", kept_gradient_bytes)
    return out


def _one_moment(nbytes: int, category: str, gradients: int) -> High:
    """A moment that is one allocation beside the gradients."""
    by = {**dict.fromkeys(WALKED, 0), "gradients": gradients, category: nbytes}
    return High(live=nbytes + gradients, blocks=nbytes + gradients, by=by)


def _evaluated(plan: Plan, stage: Stage, gradients: int) -> High:
    """A pass without a graph with its loss; logits go with their batch (trainer.py: prediction_loss_only where no metrics are computed)."""
    own = replace(
        plan,
        micro_batch=plan.evaluation_batch,
        checkpointing="none",
        dropout_attention=0.0,
        dropout_hidden=0.0,
        companions=tuple(replace(c, plan=replace(c.plan, micro_batch=plan.evaluation_batch)) for c in plan.companions),
    )
    meter = meter_of(plan)
    meter.enter("evaluate")
    held = meter.add(gradients, gradients, "gradients")
    step = Step(own, stage, meter, each=False)
    before = input_bytes(plan, sizes_of(plan, plan.architecture.pattern[-1]))
    larger = max(0, input_bytes(own, step.machine.dims) - before) if profile_of(plan.profile).tables else 0
    cached = step.machine.tape.allocate((cache_bytes(own) if _caches(plan) else 0) + larger, "activations")
    evaluate(step)
    cached.drop()
    meter.sub(gradients, gradients, "gradients", held)
    meter.enter("end")
    return max(meter.highs.values(), key=lambda high: high.blocks)


def _caches(plan: Plan) -> bool:
    """Whether the model's output names keys and values: transformers' decoders do outside training (configuration_utils.py: use_cache)."""
    return plan.framework in HUGGING_FACE and plan.architecture.network is None and not plan.architecture.encoder


def saving_bytes(plan: Plan, stage: Stage) -> int:
    """What a rank gathers at once for a full state dict.

    FSDP1 one unit in the format of its shards, moved to the host before the next (fsdp/_flat_param.py: to_cpu, with accelerate's
    FullStateDictConfig(offload_to_cpu=True)); transformers before 4.30 kept every clone on the GPU (trainer.py, save_model:
    `self.model.state_dict()`). FSDP2 one weight (checkpoint/state_dict.py with cpu_offload); ZeRO-3 the weights of one module
    (deepspeed runtime/engine.py: _zero3_consolidated_16bit_state_dict).
    """
    if plan.degrees.sharding not in GATHERED or plan.degrees.shard == 1:
        return 0
    counted, itemsize = census(plan, stage), ITEMSIZE[plan.formats.parameters]
    layers, root = [sum(sizes) for sizes in counted.layers.values()], (*counted.embedding, *counted.head)
    if plan.degrees.sharding == "zero3" or plan.fsdp_version == FSDP2:
        return itemsize * max(max(root, default=0), *(max(sizes) for sizes in counted.layers.values()))
    return itemsize * (counted.total if plan.saves_on_gpu else max(sum(root), *layers))
