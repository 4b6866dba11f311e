"""The model that Megatron's size flags describe: which block of the catalogue its layers are, and its dimensions.

Sources: M _add_network_size_args and validate_args; Megatron-LM gpt_builders.py, megatron/core/models/gpt/gpt_layer_specs.py. What decides
memory is the feed-forward part (gated or not), whether positions are a learned table, a norm of each head, routing and latent attention; a
bias, and LayerNorm in the place of RMSNorm, are a few bytes a token and do not.
"""

from __future__ import annotations

from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.patterns import hybrid_layers
from peakgate.readers.megatron_core.routing import read_latent, read_routing, routed_block
from peakgate.readers.megatron_core.vocabulary import read_vocabulary

SIZE = "model.transformer."
GPT, BERT, T5, HYBRID = "gpt", "bert", "t5", "hybrid"

SIZES = {
    "hidden_size": SIZE + "hidden_size",
    "num_attention_heads": SIZE + "heads",
    "ffn_hidden_size": SIZE + "ffn_hidden_size",
    "mtp_num_layers": SIZE + "mtp_layers",
}

GATES = ("swiglu", "quick_geglu", "gated_linear_unit")


def read_model(options: Options, kind: str) -> None:
    """States the transformer."""
    _block(options, kind)
    _layers(options, kind)
    options.sizes(SIZES)
    _heads(options)
    _inner_width(options)
    read_vocabulary(options, kind)
    _positions(options, kind)
    tied = not options.on("untie_embeddings_and_output_weights")
    options.state(SIZE + "tied_embeddings", tied, "untie_embeddings_and_output_weights")
    if kind == GPT:
        read_latent(options)
        read_routing(options)


def is_gated(options: Options) -> bool:
    """Whether the feed-forward part has a gate (M core_transformer_config_from_args: swiglu, quick_geglu)."""
    return any(options.on(name) for name in GATES)


def learns_positions(options: Options) -> bool:
    """Whether positions are a learned table (M: the default; --use-rotary-position-embeddings is an older name of rope)."""
    if options.on("use_rotary_position_embeddings"):
        return False
    return options.word("position_embedding_type", "learned_absolute") == "learned_absolute"


def _block(options: Options, kind: str) -> None:
    block, names = _named_block(options, kind)
    options.state(SIZE + "block", block, *names)


def _named_block(options: Options, kind: str) -> tuple[str, tuple[str, ...]]:
    """The block and the settings that decided it."""
    if kind in (BERT, T5):
        if is_gated(options):
            options.cannot_say(f"a gated feed-forward part in {kind}", *GATES)
        return kind, ()
    if kind == HYBRID:
        options.cannot_say("state-space layers have no kernels in the memory model", "hybrid_layer_pattern", "hybrid_override_pattern")
        return "nemotron_h", ("hybrid_layer_pattern", "hybrid_override_pattern")
    routed = routed_block(options, gated=is_gated(options))
    return routed if routed is not None else _dense_block(options)


def _dense_block(options: Options) -> tuple[str, tuple[str, ...]]:
    normed = options.on("qk_layernorm") or options.on("qk_l2_norm")
    table = learns_positions(options)
    if is_gated(options):
        if table:
            options.cannot_say("a table of learned positions beside a gated feed-forward part is not counted", "position_embedding_type")
        if normed:
            return "qwen3", ("qk_layernorm", "qk_l2_norm")
        if options.on("add_qkv_bias") and not options.on("add_bias_linear", default=True):
            return "qwen2", ("add_qkv_bias",)
        return "llama", GATES
    if normed:
        options.cannot_say("norms of queries and keys beside an ungated feed-forward part are not counted", "qk_layernorm", "qk_l2_norm")
    if table:
        return "gpt3", ("position_embedding_type",)
    if options.word("position_embedding_type") == "alibi":  # Megatron-DeepSpeed's, for BLOOM
        return "bloom", ("position_embedding_type",)
    return "nemotron", ("squared_relu", "position_embedding_type", "use_rotary_position_embeddings")


def _layers(options: Options, kind: str) -> None:
    if kind == HYBRID:
        name = "hybrid_layer_pattern" if options("hybrid_layer_pattern") else "hybrid_override_pattern"
        pattern = options(name)
        counted = hybrid_layers(pattern.text[:10_000]) if pattern else options.whole("num_layers")
        options.state(SIZE + "layers", counted or None, name, "num_layers")
        return
    if kind != T5:
        options.state(SIZE + "layers", layers_of(options), "num_layers", "encoder_num_layers")
        return
    # M validate_args: --num-layers is the encoder's; Megatron-LM pretrain_t5.py: a decoder that is not stated is as deep
    encoder = options.whole("encoder_num_layers") or options.whole("num_layers")
    options.state(SIZE + "encoder_layers", encoder, "encoder_num_layers", "num_layers")
    options.state(SIZE + "layers", options.whole("decoder_num_layers") or encoder, "decoder_num_layers", "encoder_num_layers", "num_layers")


def layers_of(options: Options) -> int | None:
    """Layers of a model with one stack."""
    return options.whole("num_layers") or options.whole("encoder_num_layers")


def _heads(options: Options) -> None:
    """Groups count only with --group-query-attention (M core_transformer_config_from_args); --num-query-groups is 1 by default."""
    groups = options.whole("num_query_groups")
    if options.on("group_query_attention"):
        options.state(SIZE + "kv_heads", groups or 1, "num_query_groups")
    elif groups is not None and groups > 1 and groups != options.whole("num_attention_heads"):
        place = options.place("num_query_groups")
        options.reading.warnings.append(f"{place} is not used without --group-query-attention: every head has its own keys and values")
    options.state(SIZE + "kv_heads", options.whole("num_key_value_heads"), "num_key_value_heads")
    if not options.on("multi_latent_attention"):
        options.state(SIZE + "head_dim", options.whole("kv_channels"), "kv_channels")


def _inner_width(options: Options) -> None:
    """M validate_args: 4h, and two thirds of it to a multiple of 64 with --swiglu."""
    hidden = options.whole("hidden_size")
    if options("ffn_hidden_size") is None and hidden:
        options.state(SIZE + "ffn_hidden_size", int((4 * hidden * 2 / 3) / 64) * 64 or 64 if options.on("swiglu") else 4 * hidden)


def _positions(options: Options, kind: str) -> None:
    if kind != HYBRID and learns_positions(options):
        options.state(SIZE + "max_positions", options.whole("max_position_embeddings"), "max_position_embeddings")
    if options.word("position_embedding_type") == "relative":
        options.cannot_say("relative positions are not counted in Megatron's blocks", "position_embedding_type")
