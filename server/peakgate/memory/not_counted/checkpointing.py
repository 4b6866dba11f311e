"""What is not counted of activation checkpointing."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.job import Job
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of


def of_checkpointing(job: Job, plan: Plan) -> Iterator[str]:
    """Budgets, modules and lists of operations that nothing here runs again."""
    own, selective = plan.framework == "megatron", plan.checkpointing == "selective"
    wrapped = selective and bool(plan.recomputed)
    if plan.checkpointing == "memory-budget":
        yield "checkpointing.mode: memory-budget is counted as none, but for a budget of 0 in layers that are compiled one by one"
    if job.checkpointing.modules and set(job.checkpointing.modules) != {"core_attn"} and not own and not wrapped:
        yield "checkpointing.modules: only core_attn and mlp of Hugging Face's models are counted"
    listed = own or profile_of(plan.profile).per_operation or wrapped
    if selective and plan.attention != "eager" and plan.profile != "textbook" and not listed:
        yield "checkpointing.mode: selective recomputes only an eager attention core; a list of operations is counted as none"
