"""From the method that a job states to a plan: the batch, the loss, and the models that are resident beside the policy."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.architecture import Architecture
from peakgate.memory.fill import Resolver
from peakgate.memory.job import Job, Model
from peakgate.memory.methods.rows import METHODS, Method
from peakgate.memory.model import Described, describe
from peakgate.memory.plan import Companion, LoraPlan, Plan

SCORE_HEAD = {"head": "head_score"}
LOGITS_LOSSES = ("full", "chunked", "fused")
ROLES = ("critic", "reward", "teacher")
"""Fields of `method` that describe a model, in the order in which its lines stand in the ledger."""


def method_of(job: Job) -> Method:
    """The row of the stated method."""
    return METHODS[job.method.name or "sft"]


def with_method(plan: Plan, job: Job, fill: Resolver) -> Plan:
    """The plan with the method's batch, its loss and its other models."""
    name, row = job.method.name or "sft", method_of(job)
    own = replace(fill, framework=name)
    sequences = own.whole(job.method.sequences_per_example, "method.sequences_per_example") if row.loss else 1
    if not row.loss and job.method.sequences_per_example:
        sequences = job.method.sequences_per_example
    plan = replace(plan, micro_batch=plan.micro_batch * sequences, completion=_completion(plan, job))
    if row.scores:
        plan = replace(plan, architecture=scoring(plan.architecture))
    companions = [_companion(plan, row, role, model) for role, model in _stated_models(job)]
    reference = _reference(plan, job, own, row)
    if reference:
        companions = [reference, *companions]
    return replace(plan, loss=row.loss or plan.loss, keep_logits=plan.keep_logits and not row.loss, companions=tuple(filter(None, companions)))


def _completion(plan: Plan, job: Job) -> int:
    """Tokens of the answer in each sequence; all of it when it is not stated."""
    stated = 0 if plan.architecture.encoder else job.batch.target_length or 0
    return min(stated, plan.sequence) or plan.sequence


def scoring(architecture: Architecture) -> Architecture:
    """The same layers with one number a token behind them (an encoder has a head of its own for that)."""
    if architecture.traits.get("objective") == "plain":
        return architecture
    return _scoring(architecture)


def _scoring(architecture: Architecture) -> Architecture:
    return replace(architecture, roles={**architecture.roles, **SCORE_HEAD}, tied=False)


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
    if role != "teacher":
        architecture = scoring(architecture)
    if role == "critic":
        return Companion(role=role, plan=replace(plan, architecture=architecture, lora=None, loss="full"), trained=True)
    return Companion(role=role, plan=_frozen(plan, architecture, None), caches=row.caches)


def _reference(plan: Plan, job: Job, own: Resolver, row: Method) -> Companion | None:
    """A second copy of the policy, or the policy itself without its adapters."""
    if not row.loss and job.method.reference is None:
        return None
    adapted = plan.lora is not None and job.method.reference is None
    kind = own.text("adapter" if adapted and own_default(own) == "full" else job.method.reference, "method.reference")
    if adapted and kind == "adapter":
        own.assumptions.append("method.reference: adapter (TRL trainer/dpo_trainer.py: under adapters the base model is the reference)")
    if kind == "none":
        return None
    base = replace(plan.lora, targets=frozenset[str]()) if plan.lora else None
    return Companion(role="reference", plan=_frozen(plan, plan.architecture, base), shares_weights=kind == "adapter", caches=row.caches)


def own_default(own: Resolver) -> str:
    """The reference model that the method itself makes."""
    from peakgate.memory.defaults import default_of

    return default_of(own.framework, "method.reference").value


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
        loss="full",
        companions=(),
    )
