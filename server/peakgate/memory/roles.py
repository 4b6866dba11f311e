"""What a job chooses for each role of a block: which norm, which attention core, whether dropout is there at all."""

from __future__ import annotations

from peakgate.memory.context_parallel import context_roles, context_suffix
from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.frozen import is_frozen
from peakgate.memory.library import BLOCKS, KERNELS
from peakgate.memory.parallel import divided
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.profiles.liger import replaced
from peakgate.memory.tape import Tensor


def roles_of(plan: Plan, kind: str) -> dict[str, str]:
    """Defaults, then the family's roles, then those of one attention implementation, then what precision, mask and profile force."""
    arch, attention = plan.architecture, "eager" if plan.attention == "eager" else "sdpa"
    masked, prefixes = _masked(plan, kind), (f"{attention}/", f"{plan.attention}/", f"{kind}/")
    roles = _defaults(plan, kind, masked=masked)
    profile = profile_of(plan.profile)
    decoder = arch.decoder if kind == "decoder" else {}
    modules = profile.roles.get(arch.block, {})
    family = {role: block for role, block in arch.roles.items() if role.rpartition("/")[2] not in modules or "/" not in role}
    own = {**family, **decoder, **modules}
    roles |= {role: block for role, block in own.items() if "/" not in role}
    roles |= {role.split("/")[1]: block for role, block in own.items() if role.startswith(prefixes)}
    roles["core"] = _core(plan, roles["core"], masked=masked)
    if "cross_core" in roles:
        roles["cross_core"] = _core(plan, roles["cross_core"], masked=padded(plan) and attention == "sdpa")
    if padded(plan):
        roles = _padded(roles, kind)
    if plan.formats.autocast:
        roles |= {
            "for_matmul": "half_for_matmul",
            "power": "power_fp32",
            "bias_cast": "to_half",
            "loss_cast": "to_float32",
            "product_cast": "to_half",
        }
        roles["softmax_up"] = "softmax_fp32"  # aten autocast_mode.h: softmax is in the list of fp32_set_opt_dtype
    renames = dict(profile.renames)
    if profile.transformers:
        renames |= replaced(plan)
    renames |= plan.earlier_kernels
    roles = {role: renames.get(block, block) for role, block in roles.items()} | {k: v for k, v in renames.items() if k not in roles}
    roles |= profile.blocks.get(arch.block, {})
    final = roles["norm"] + profile.final_norm_suffix
    roles["final"] = own.get("final") or (final if final in KERNELS or final in BLOCKS else roles["norm"])
    roles |= context_roles(plan)
    if plan.compiled:
        roles = _compiled(plan, roles)
    if profile.compiles_loss(plan):
        roles |= profile.compiled_loss
    if plan.recomputed:
        segments = [role for module in plan.recomputed for role in profile.recomputed.get(module, ()) if role in roles]
        roles |= {role: REBUILT + roles[role] for role in segments}
    elif plan.checkpointing == "selective" and plan.attention == "eager" and not profile.per_operation:
        roles |= {"core": "rebuilt_core", "core_inside": roles["core"]}
    return roles


def _compiled(plan: Plan, roles: dict[str, str]) -> dict[str, str]:
    """What torch.compile makes of the roles: of single ones, of the loss, or of the whole layer."""
    profile = profile_of(plan.profile)
    out = {role: profile.compiled.get(block, block) if role != "final" else block for role, block in roles.items()}
    kernel = profile.compiled_layers.get(f"{plan.architecture.block}/{plan.checkpointing}", "") + context_suffix(plan)
    if kernel in KERNELS:
        out |= {"layer": "layer_compiled", "compiled_kernel": kernel}
    return out


REBUILT = "rebuilt_"
"""Before the name of a block that is a segment of its own."""

PADDED = {"core_bias": "core_bias_padded", "core_bias_cross": "core_bias_cross_padded"}
CROSS = {"core_efficient": "core_efficient_cross", "core_efficient_half": "core_efficient_half_cross"}


def padded(plan: Plan) -> bool:
    """Whether an encoder is handed a padding mask; Whisper's ignores it (models/whisper/modeling_whisper.py: WhisperEncoder)."""
    traits = plan.architecture.traits
    return plan.builds_mask and traits.get("objective") == "plain" and traits.get("inputs") not in ("sound", "images")


def _padded(roles: dict[str, str], kind: str) -> dict[str, str]:
    """The mask of the encoder's tokens: in its own layers, and in what the decoder reads of them; a decoder's labels need none."""
    out = {role: PADDED.get(block, block) for role, block in roles.items()} | {"mask_cross": "add_small"}
    if kind != "decoder":
        out["mask_scores"] = "add_small"
    if "cross_core" in out:
        out["cross_core"] = CROSS.get(out["cross_core"], out["cross_core"])
    return out


def _defaults(plan: Plan, kind: str, *, masked: bool) -> dict[str, str]:
    arch, eager = plan.architecture, plan.attention == "eager"
    heads, groups, tensor = arch.dims["a"], arch.dims["n"], plan.degrees.tensor
    return {
        "core": "core_eager" if eager else "core_flash",
        "value_heads": "heads" if eager or masked else "view",
        "heads_q": "heads",
        "heads_k": "heads",
        "causal_loss": "causal_loss",
        "loss_upcast": "to_float32",
        "repeat_heads": "pass" if groups == heads else "repeat_view" if groups == 1 else "repeat",
        "query_groups": "copied" if 1 < divided(groups, tensor) < divided(heads, tensor) else "view",
        "gather_tokens": "all_gather" if plan.degrees.sequence_parallel and tensor > 1 else "pass",
        "scatter_tokens": "reduce_scatter" if plan.degrees.sequence_parallel and tensor > 1 else "pass",
        "separate": "copied" if plan.degrees.context > 1 else "view",
        "exchange_tokens": "exchange" if plan.degrees.expert > 1 else "pass",
        "sort_tokens_te": "sort_chunks" if arch.dims["E"] > plan.degrees.expert else "pass",
        "discard_query": "discard_low" if arch.dims.get("q_rank") else "pass",
        "latent_query_input": "latent_query_low" if arch.dims.get("q_rank") else "pass",
        "repeat_interleave": "pass" if groups == heads else "repeat",
        "for_matmul": "contiguous_if_transposed",
        "softmax_up": "softmax_fp32",
        "soft_cap": "pass",
        "mask_scores": "add_small",
        "mask_cross": "pass",
        "bias_cast": "pass",
        "loss_cast": "pass",
        "product_cast": "pass",
        "dropout_activation": "pass",
        "cross_leaf": "leaf" if plan.checkpointing == "full" else "pass",
        "linear_up": "linear" if ITEMSIZE[plan.formats.parameters] == ITEMSIZE["float32"] else "linear_float32",
        "dropout_embedding": "pass",
        "require_grad": "leaf" if plan.checkpointing == "full" and (plan.lora or _embeds_frozen(plan, kind)) else "pass",
        "lora_dropout": "dropout" if plan.lora and plan.lora.dropout else "pass",
        "linear_quantised": profile_of(plan.profile).quantised,
        "linear_merged": _merged(plan),
        "zero_padding": "fill_padding" if plan.transformer_engine else "pass",
        "zero_padding_cross": "fill_padding_cross" if plan.transformer_engine else "pass",
        "ungroup": "contiguous" if 1 < groups < heads else "pass",
        "positions_rope": "rope_pairs" if plan.builds_mask else "rope_pairs_indexed",
        "dropout_hidden": "dropout" if plan.dropout_hidden else "pass",
        "dropout_attention": "dropout" if plan.dropout_attention else "pass",
    }


def _embeds_frozen(plan: Plan, kind: str) -> bool:
    """Whether nothing in front of the layers is trained, and the library makes its output ask for a gradient all the same."""
    return plan.asks_at_input and is_frozen(plan.frozen, plan.architecture, "embedding.V", kind, layer=False, numbered=False)


def _merged(plan: Plan) -> str:
    """A joined matrix of queries, keys and values whose adapters are none, those of some parts, or those of all."""
    parts = plan.lora.targets & {"q", "k", "v"} if plan.lora else ()
    return ("linear", "lora_merged", "lora_merged", "lora_merged_all")[len(parts)]


def _masked(plan: Plan, kind: str) -> bool:
    """Whether sdpa gets a mask. A window is one as soon as the sequence reaches it (transformers masking_utils.py: kv_length < window)."""
    if plan.attention != "sdpa" or plan.profile == "textbook":
        return False
    if plan.architecture.traits.get("objective") == "plain":
        return padded(plan) and kind != "decoder"
    window = plan.architecture.dims.get("window", 0)
    profile = profile_of(plan.profile)
    if not profile.masks_padding:
        return kind != "global" and 0 < window <= plan.sequence
    return plan.builds_mask or "always_masked" in plan.architecture.roles or (kind != "global" and 0 < window <= plan.sequence)


AUTOCAST_CORES = {
    "core_flash": "core_flash_half",
    "core_flash_copy": "core_flash_half_copy",
    "core_efficient": "core_efficient_half",
    "core_efficient_latent": "core_efficient_latent_half",
    "core_efficient_latent_masked": "core_efficient_latent_masked_half",
}
"""Cores whose inputs autocast makes 16-bit inside the call."""


def _core(plan: Plan, core: str, *, masked: bool) -> str:
    """The attention core: a mask excludes the flash kernel, and so does fp32 (aten cuda/sdp_utils.cpp)."""
    formats, roles = plan.formats, plan.architecture.roles
    if core.startswith("core_bias"):  # the bias is a mask of its own
        return core
    if masked:
        core = roles.get("always_masked") or roles.get("masked_core", "core_efficient")
    if formats.autocast:
        return AUTOCAST_CORES.get(core, core)
    if masked:
        return core
    if formats.compute == "float32" and plan.attention != "eager" and plan.profile != "textbook" and core.startswith("core_flash"):
        return "core_efficient_plain"
    return "core_flash_repeated" if plan.repeats_heads and core == "core_flash" else core


SMALLER_FIRST = {
    "add": "add_promoted",
    "multiply": "multiply_promoted",
    "multiply_by": "multiply_by_promoted",
    "multiply_rows": "weigh_promoted",
}
LARGER_FIRST = {"add": "add_promoted_right"}


def promoted(operation: str, args: list[Tensor]) -> str:
    """The variant of an element-wise kernel whose factors have different formats: the smaller one's gradient is cast back."""
    if len(args) != 2 or args[0].itemsize == args[1].itemsize:
        return operation
    return (SMALLER_FIRST if args[0].itemsize < args[1].itemsize else LARGER_FIRST).get(operation, operation)


def transposed(operation: str, x: Tensor) -> bool:
    """Whether the output has heads before the sequence over an allocation in (batch, sequence, head, dim) order."""
    if operation in ("heads", "heads_free", "repeat_view"):
        return True
    return x.transposed and operation not in ("join", "repeat", "contiguous", "matmul", "merge_heads", "first_part")
