"""Mixtures of experts and latent attention: M _add_moe_args, _add_mla_args; megatron/core/transformer/transformer_config.py."""

from __future__ import annotations

from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.patterns import frequency

SIZE = "model.transformer."
MLA = SIZE + "mla."

ROUTED = {"num_experts": SIZE + "experts", "moe_ffn_hidden_size": SIZE + "expert_ffn_hidden_size"}
LATENT_DEFAULTS = {"kv_lora_rank": 32, "qk_pos_emb_head_dim": 64, "qk_head_dim": 128, "v_head_dim": 128}
"""M _add_mla_args; --q-lora-rank is None: the query is not compressed."""

LATENT = {
    "kv_lora_rank": MLA + "kv_lora_rank",
    "qk_pos_emb_head_dim": MLA + "qk_rope_head_dim",
    "qk_head_dim": MLA + "qk_nope_head_dim",
    "v_head_dim": MLA + "v_head_dim",
}
TOP_K = 2
"""M TransformerConfig.moe_router_topk."""


def experts_of(options: Options) -> int:
    """Routed experts; 0 without any. Megatron-DeepSpeed states a list, and 1 for none."""
    stated = options("num_experts")
    if stated is None or isinstance(stated.value, list):
        return 0
    count = options.whole("num_experts") or 0
    return count if count > 1 else 0


def routed_block(options: Options, *, gated: bool) -> tuple[str, tuple[str, ...]] | None:
    """The block of a routed model, or of one with latent attention, and what decided it; None for a plain one."""
    if options.on("multi_latent_attention") and not experts_of(options):
        options.cannot_say("latent attention is counted in routed models alone", "multi_latent_attention")
        return None
    if options.on("multi_latent_attention"):
        grouped = options.word("moe_router_score_function") == "sigmoid" or options.on("moe_router_enable_expert_bias")
        names = ("moe_router_score_function", "moe_router_enable_expert_bias", "multi_latent_attention")
        return ("deepseek_v3", names) if grouped else ("deepseek_v2", ("multi_latent_attention",))
    if not experts_of(options):
        return None
    if not gated:
        options.cannot_say("experts without a gate are not counted", "num_experts")
    normed = options.on("qk_layernorm") or options.on("qk_l2_norm")
    return ("qwen3_moe", ("qk_layernorm", "qk_l2_norm")) if normed else ("mixtral", ("num_experts",))


def read_latent(options: Options) -> None:
    """States ranks and widths of latent attention."""
    if not options.on("multi_latent_attention") or not experts_of(options):
        return
    options.state(MLA + "q_lora_rank", options.whole("q_lora_rank") or 0, "q_lora_rank")
    for name, path in LATENT.items():
        options.state(path, options.size(name, LATENT_DEFAULTS[name]), name)


def read_routing(options: Options) -> None:
    """States the experts."""
    stated = options("num_experts")
    if stated is not None and isinstance(stated.value, list):
        options.cannot_say("different numbers of experts in different layers are not counted", "num_experts")
    if not experts_of(options):
        return
    options.sizes(ROUTED)
    options.state(SIZE + "experts_per_token", options.size("moe_router_topk", TOP_K), "moe_router_topk")
    _shared(options)
    _dense_layers(options)


def _shared(options: Options) -> None:
    """M moe_shared_expert_intermediate_size is the width of all shared experts together."""
    name = "moe_shared_expert_intermediate_size"
    width, one = options.whole(name), options.whole("moe_ffn_hidden_size") or options.whole("ffn_hidden_size")
    if width is None:
        return
    if one and width % one == 0:
        options.state(SIZE + "shared_experts", width // one, name)
    else:
        options.cannot_say("shared experts of a width that is no multiple of a routed one's", name)
    if not options.on("multi_latent_attention"):
        options.cannot_say("shared experts are counted beside latent attention alone", name)


def _dense_layers(options: Options) -> None:
    """Leading dense layers; another mixture of dense and routed layers has no words."""
    stated = options("moe_layer_freq")
    if stated is None:
        return
    try:
        pattern = _pattern(stated.value)
    except ValueError as error:
        options.reading.warnings.append(f"moe_layer_freq: {stated.text[:80]!r} cannot be read ({stated.place}): {error}")
        return
    if pattern == 1:
        return
    leading = [*pattern, 1].index(1) if isinstance(pattern, list) else 0
    if isinstance(pattern, int) or 0 in pattern[leading:]:
        options.cannot_say("dense layers among the routed ones, but for leading ones", "moe_layer_freq")
    elif leading:
        options.state(SIZE + "dense_layers", leading, "moe_layer_freq")


def _pattern(value: object) -> list[int] | int:
    if isinstance(value, list):
        text = "".join(str(each) for each in value[:5000])
        return [int(each) for each in text] if set(text) <= {"0", "1"} else frequency(text)
    return frequency(str(value))


def read_dispatch(options: Options) -> None:
    """How tokens reach the experts of other ranks; the memory model exchanges them (alltoall) and routes evenly."""
    many = options.size("expert_model_parallel_size", 1)
    kind = options.word("moe_token_dispatcher_type", "alltoall" if options.on("deepspeed") else "allgather")
    if many > 1 and kind == "allgather":
        options.cannot_say("tokens of all expert parallel ranks are gathered on each (allgather dispatcher)", "moe_token_dispatcher_type")
    elif many > 1 and (kind == "flex" or options.on("moe_enable_deepep")):
        options.cannot_say("buffers of DeepEP and its like are not counted", "moe_token_dispatcher_type", "moe_enable_deepep")
    factor = options.number("moe_expert_capacity_factor")
    if many > 1 and factor is not None and factor >= 1 and options.on("moe_pad_expert_input_to_capacity"):
        options.state("parallelism.expert_imbalance", factor, "moe_expert_capacity_factor")
