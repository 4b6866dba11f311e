"""From the method that a job states to a plan: the batch, the loss, and the models that are resident beside the policy."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.architecture import Architecture
from peakgate.memory.defaults import default_of
from peakgate.memory.fill import Resolver
from peakgate.memory.frozen import NOTHING
from peakgate.memory.job import Job, Model
from peakgate.memory.methods.engine import engine_bytes
from peakgate.memory.methods.rows import METHODS, Method
from peakgate.memory.model import Described, describe
from peakgate.memory.plan import Companion, LoraPlan, Plan

ROLES = ("critic", "reward", "teacher")
"""Fields of `method` that describe a model, in the order in which its lines stand in the ledger."""


def method_of(job: Job) -> Method:
    """The row of the stated method."""
    return METHODS[job.method.name or "sft"]


def with_method(plan: Plan, job: Job, fill: Resolver) -> Plan:
    """The plan with the method's batch, its loss and its other models."""
    row, own = method_of(job), replace(fill, framework=job.method.name or "sft")
    stated = job.method.sequences_per_example
    sequences = own.whole(stated, "method.sequences_per_example") if row.loss else stated or 1
    plan = replace(
        plan,
        architecture=scoring(plan.architecture) if row.scores else plan.architecture,
        micro_batch=plan.micro_batch * sequences,
        sequences=sequences,
        evaluation_batch=(job.evaluate.micro_batch_size or 0) * sequences,
        completion=_completion(plan, job),
        engine_bytes=engine_bytes(job),
        engine_sleeps=bool(job.method.generation and job.method.generation.sleep),
        loss=_loss(plan, job, row),
        keep_logits=plan.keep_logits and not row.loss,
    )
    others = [_companion(plan, row, role, model) for role, model in _stated_models(job)]
    return replace(plan, companions=tuple(each for each in (_reference(plan, job, own, row), *others) if each is not None))


TILED = ("fused", "chunked")
"""Losses that never hold all logits (TRL 1.16: add_fused_lm_head)."""


def _loss(plan: Plan, job: Job, row: Method) -> str:
    """The method's own; without whole logits where the job says so."""
    return "tiled" if row.loss and not row.scores and job.loss.implementation in TILED else row.loss or plan.loss


def _completion(plan: Plan, job: Job) -> int:
    """Tokens of the answer in each sequence; all of it when it is not stated."""
    stated = 0 if plan.architecture.encoder else job.batch.target_length or 0
    return min(stated, plan.sequence) or plan.sequence


def scoring(architecture: Architecture) -> Architecture:
    """The same layers with one number a token behind them; an encoder has a head of its own for that."""
    if architecture.traits.get("objective") == "plain" or architecture.network is not None:
        return architecture
    return replace(architecture, roles={**architecture.roles, "head": "head_score"}, tied=False)


def _stated_models(job: Job) -> list[tuple[str, Model]]:
    return [(role, model) for role in ROLES if (model := getattr(job.method, role)) is not None]


def described_models(job: Job) -> list[tuple[str, Described]]:
    """Every other model that the job states, by its field."""
    return [(role, describe(model)) for role, model in _stated_models(job)]


def _companion(plan: Plan, row: Method, role: str, model: Model) -> Companion | None:
    """A model of its own: a critic is trained, the others are only run. None when it has no dimensions."""
    architecture = describe(model).architecture
    if architecture is None or architecture.network is not None:
        return None
    if role == "teacher":
        return Companion(role=role, plan=_frozen(plan, architecture, None), caches=row.caches)
    trained = role == "critic"
    own = _frozen(plan, scoring(architecture), None)
    return Companion(role=role, plan=replace(own, checkpointing=plan.checkpointing) if trained else own, trained=trained)


def _reference(plan: Plan, job: Job, own: Resolver, row: Method) -> Companion | None:
    """A second copy of the policy, or the policy itself without its adapters."""
    stated = job.method.reference
    if not row.loss and stated is None:
        return None
    if stated is None and plan.lora is not None and default_of(own.framework, "method.reference").value == "full":
        stated = "adapter"
        own.assumptions.append("method.reference: adapter (TRL trainer/dpo_trainer.py: under adapters the base is the reference)")
    kind = own.text(stated, "method.reference")
    if kind == "none":
        return None
    base = replace(plan.lora, targets=frozenset[str]()) if plan.lora else None
    shared = kind == "adapter" and base is not None
    return Companion(role="reference", plan=_frozen(plan, plan.architecture, base), shares_weights=shared, caches=row.caches)


def _frozen(plan: Plan, architecture: Architecture, lora: LoraPlan | None) -> Plan:
    """A plan that is only run forward, without a graph, in evaluation mode."""
    return replace(
        plan,
        architecture=architecture,
        lora=lora,
        checkpointing="none",
        checkpoint_layers=0,
        reentrant=False,
        recomputed=frozenset(),
        dropout_attention=0.0,
        dropout_hidden=0.0,
        pins_inputs=False,
        frozen=NOTHING,
        loss="full",
        companions=(),
        degrees=replace(plan.degrees, pipeline=1, virtual_pipeline=1, stage_layers=()),
    )
