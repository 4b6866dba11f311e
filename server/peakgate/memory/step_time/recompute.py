"""Which parts of a forward pass run a second time.

Full checkpointing runs the layers it wraps again: 8Ψ FLOP a token instead of 6Ψ when it wraps them all (Korthikanti et al. 2022, arXiv
2205.05198, section 6: 30 to 40 % of the step). Selective recomputation runs attention cores again (section 5), or the modules that are
named (megatron/core/transformer/transformer_config.py: recompute_modules). torchtitan's list keeps attention and every second product
(`selective.py`). A budget of torch.compile's partitioner, whose choices depend on measured times, counts as everything that is no product,
which the partitioner recomputes first (torch/_functorch/partitioners.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.step_time.arithmetic import Number, positive
from peakgate.memory.step_time.elementwise import activation_elements, norm_elements
from peakgate.memory.step_time.sizes import Sizes
from peakgate.memory.step_time.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Shares of the forward pass that run again, in the layers that are wrapped."""

    attention: float = 0.0
    mlp: float = 0.0
    core: float = 0.0
    elementwise: float = 0.0
    collectives: float = 0.0
    """Of tensor, context and expert parallelism."""


WHOLE = Again(attention=1, mlp=1, core=1, elementwise=1, collectives=1)
LISTED = Again(attention=0.5, mlp=0.5, elementwise=1)
"""torchtitan models/llama3/infra/parallelize.py: outputs of attention, reduce-scatters and every second product are kept."""
POINTWISE = Again(elementwise=1)
CORE = Again(core=1)
DEFAULT_MODULES = frozenset({"core_attn"})


def runs_again(plan: Plan) -> Again:
    """What the plan's words recompute."""
    if plan.checkpointing == "full":
        return WHOLE
    if plan.checkpointing == "memory-budget":
        return POINTWISE
    if plan.checkpointing != "selective":
        return Again()
    return LISTED if profile_of(plan.profile).per_operation else _modules(plan, plan.recomputed or DEFAULT_MODULES)


def _modules(plan: Plan, names: frozenset[str]) -> Again:
    activation, norms = activation_elements(plan)[0], 2 * plan.architecture.dims["h"] * norm_elements(plan)[0]
    moved = activation + norms
    pointwise = activation / moved * bool(names & {"mlp", "moe_act"}) + norms / moved * ("layernorm" in names)
    return Again(
        attention=_latent_share(plan) * ("mla_up_proj" in names),
        mlp=float("mlp" in names),
        core=float("core_attn" in names),
        elementwise=pointwise,
    )


def _latent_share(plan: Plan) -> float:
    """Up projections of latent attention in the elements of all its projections."""
    dims = plan.architecture.dims
    if not dims.get("latent_q"):
        return 0.0
    up = dims.get("q_rank", 0) * dims["latent_q"] + dims["kv_rank"] * dims["latent_kv"]
    rest = dims["h"] * ((dims.get("q_rank", 0) or dims["latent_q"]) + dims["kv_rank_rope"] + dims["latent_v"])
    return up / (up + rest)


def wrapped_share(plan: Plan, work: Work, sizes: Sizes) -> Number:
    """Layers that are checkpointed, in all of them: n of a stage's, or all when none are counted (`stretches.py`).

    Selective recomputation of modules is in every layer.
    """
    if plan.checkpointing != "full" and not profile_of(plan.profile).per_operation:
        return 1.0
    layers, n = work.layers / sizes.pipeline, sizes.checkpoint_layers
    stated = n - positive(n - layers)
    return (stated + (n < 1) * layers) / layers
