"""The model families: one row each, and the blocks that their rows name."""

from __future__ import annotations

from peakgate.memory.architecture import Family
from peakgate.memory.families import (
    alibi,
    clip,
    common,
    encoder,
    falcon,
    gemma,
    gpt,
    gpt_oss,
    latent,
    llama,
    moe,
    quantised,
    rotated_part,
    seq2seq,
    variants,
)

BLOCKS = (
    common.BLOCKS
    | gpt.BLOCKS
    | llama.BLOCKS
    | gemma.BLOCKS
    | falcon.BLOCKS
    | moe.BLOCKS
    | latent.BLOCKS
    | gpt_oss.BLOCKS
    | alibi.BLOCKS
    | rotated_part.BLOCKS
    | variants.BLOCKS
    | encoder.BLOCKS
    | seq2seq.BLOCKS
    | quantised.BLOCKS
    | clip.BLOCKS
)

EVERY_LINEAR = frozenset({"q", "k", "v", "o", "qkv", "up", "down"})

LLAMA = {
    "layer": "layer_pre_norm",
    "norm": "rms_norm",
    "attention": "attention_llama",
    "mlp": "mlp_gated",
    "act": "silu",
    "embed": "embed_plain",
    "head": "head_linear",
}
GPT2 = {
    "layer": "layer_gpt2",
    "norm": "layer_norm",
    "attention": "attention_gpt2",
    "mlp": "mlp_plain",
    "act": "gelu_new",
    "embed": "embed_positions",
    "head": "head_linear",
    "dropout_embedding": "dropout_hidden",
    "dropout_mlp": "dropout_hidden",
    "softmax_up": "softmax",
    "heads_k": "heads_free",
    "sdpa/heads_q": "view",
    "sdpa/heads_k": "view",
}
OPT = GPT2 | {
    "layer": "layer_opt",
    "attention": "attention_opt",
    "act": "relu",
    "softmax_up": "softmax_fp32",
    "heads_k": "heads",
    "embed": "embed_opt",
    "sdpa/heads_q": "heads",
    "sdpa/heads_k": "heads",
}
NEOX = GPT2 | {
    "layer": "layer_neox",
    "attention": "attention_neox",
    "act": "gelu",
    "softmax_up": "softmax_fp32",
    "embed": "embed_plain",
    "sdpa/core": "core_flash_copy",
}
FALCON = GPT2 | {
    "layer": "layer_falcon",
    "attention": "attention_falcon",
    "act": "gelu",
    "embed": "embed_plain",
    "dropout_mlp": "pass",
    "dropout_embedding": "pass",
    "always_masked": "core_efficient_full",
    "eager/core": "core_eager_full",
}
FALCON_MQA = FALCON | {"layer": "layer_falcon_mqa", "attention": "attention_falcon_mqa", "eager/core": "core_eager_mqa"}
MOE = LLAMA | {"mlp": "moe", "normalise_top_k": "normalise", "router_cast": "pass", "weigh_experts": "weigh_promoted"}
QWEN3 = LLAMA | {"attention": "attention_qwen3"}
PHI3 = LLAMA | {"layer": "layer_phi3", "attention": "attention_phi3", "mlp": "mlp_fused", "sdpa/core": "core_flash_copy"}
SANDWICH = LLAMA | {"layer": "layer_sandwich", "norm": "rms_norm_gemma", "act": "gelu", "embed": "embed_scaled"}

DEEPSEEK = LLAMA | {
    "attention": "attention_mla",
    "query": "query_latent",
    "dense/mlp": "mlp_dense",
    "limit_groups": "limit_groups",
    "weigh_experts": "weigh_promoted",
    "eager/core": "core_eager_latent",
    "sdpa/core": "core_efficient_latent",
    "masked_core": "core_efficient_latent_masked",
    "flash/core": "core_flash_padded",
}
QWEN_MOE = MOE | {"router_cast": "to_compute", "weigh_experts": "weigh"}
GPT_OSS = LLAMA | {
    "norm": "rms_norm_olmo",
    "rope": "rope_halves",
    "mlp": "moe_biased",
    "weigh_experts": "weigh",
    "eager/core": "core_eager_sinks",
    "flash/core": "core_flash_sinks",
}
ROTATED_PART = LLAMA | {"norm": "layer_norm", "attention": "attention_rotated_part", "sdpa/core": "core_flash_copy"}
BLOOM = GPT2 | {
    "layer": "layer_bloom",
    "attention": "attention_bloom",
    "mlp": "mlp_bloom",
    "act": "gelu_bloom",
    "softmax_up": "softmax_fp32",
    "embed": "embed_normed",
}
MPT = GPT2 | {
    "layer": "layer_mpt",
    "norm": "layer_norm_unbiased",
    "attention": "attention_mpt",
    "mlp": "mlp_mpt",
    "act": "gelu",
    "embed": "embed_plain",
    "sdpa/attention": "attention_mpt_fused",
}
DROPPED = LLAMA | {"attention": "attention_residual", "mlp": "mlp_residual"}

FAMILIES: dict[str, Family] = {
    "gpt": Family(roles=GPT2 | {"embed": "embed_plain", "act": "gelu", "dropout_embedding": "pass"}, biases=EVERY_LINEAR, tied=True),
    "gpt2": Family(roles=GPT2, biases=EVERY_LINEAR, tied=True, positions="learned"),
    "gpt3": Family(roles=GPT2, biases=EVERY_LINEAR, tied=True, positions="learned", max_positions=2048),  # arXiv 2005.14165, 2.1
    "opt": Family(roles=OPT, biases=EVERY_LINEAR, tied=True, positions="offset"),
    "gpt_neox": Family(roles=NEOX, biases=EVERY_LINEAR, rotary_share=0.25),
    "falcon": Family(roles=FALCON, tied=True),
    "falcon_mqa": Family(roles=FALCON_MQA, tied=True),
    "llama": Family(roles=LLAMA),
    "mistral": Family(roles=LLAMA, windowed=True),
    "qwen2": Family(roles=LLAMA, biases=frozenset({"q", "k", "v"})),
    "qwen3": Family(roles=QWEN3),
    "phi3": Family(roles=PHI3, windowed=True),
    "olmo2": Family(roles=LLAMA | {"layer": "layer_post_norm", "norm": "rms_norm_olmo", "attention": "attention_olmo2"}, rope_tables=2),
    "gemma2": Family(
        roles=SANDWICH | {"soft_cap": "tanh_cap", "head": "head_capped"},
        tied=True,
        masks=2,
        pattern=("local", "global"),
        implementations=("eager", "flash"),
    ),
    "gemma3": Family(
        roles=SANDWICH | {"attention": "attention_gemma3"},
        tied=True,
        masks=2,
        flags=frozenset({"tables_by_kind"}),
        rope_tables=2,
        windowed=True,
        pattern=("local",) * 5 + ("global",),
    ),
    "mixtral": Family(roles=MOE),
    "qwen3_moe": Family(roles=MOE | {"attention": "attention_qwen3", "router_cast": "to_compute", "weigh_experts": "weigh"}),
    "qwen2_moe": Family(roles=QWEN_MOE | {"mlp": "moe_gated"}, biases=frozenset({"q", "k", "v"})),
    "olmoe": Family(roles=QWEN_MOE | {"attention": "attention_olmo2"}),
    "deepseek_v2": Family(roles=DEEPSEEK | {"rope": "rope_complex", "mlp": "moe_limited"}, latent=True),
    "deepseek_v3": Family(roles=DEEPSEEK | {"rope": "rope_neighbours", "mlp": "moe_grouped", "normalise_top_k": "normalise"}, latent=True),
    "gpt_oss": Family(
        roles=GPT_OSS,
        biases=frozenset({"q", "k", "v", "o", "router"}),
        masks=2,
        rope_tables=0.5,
        windowed=True,
        pattern=("local", "global"),
        implementations=("eager", "flash"),
    ),
    "bloom": Family(
        roles=BLOOM,
        biases=EVERY_LINEAR,
        tied=True,
        positions="alibi",
        traits={"position_ids": "none"},
        implementations=("eager",),
        flags=frozenset({"alibi_of_batch"}),
    ),
    "mpt": Family(
        roles=MPT,
        tied=True,
        positions="alibi",
        traits={"position_ids": "none"},
        implementations=("eager",),
        flags=frozenset({"alibi_table", "boolean_mask"}),
    ),
    "phi": Family(
        roles=ROTATED_PART | {"layer": "layer_parallel", "mlp": "mlp_plain", "act": "gelu_new", "dropout_mlp": "pass"},
        biases=EVERY_LINEAR | {"head"},
        rotary_share=0.5,
    ),
    "gptj": Family(
        roles=GPT2
        | {
            "layer": "layer_parallel",
            "attention": "attention_gptj",
            "rope": "rope_of_its_own",
            "embed": "embed_plain",
            "dropout_mlp": "pass",
            "dropout_embedding": "pass",
            "eager/core": "core_eager_gptj",
        },
        biases=frozenset({"up", "down", "head"}),
        positions="table",
        rope_tables=0.5,
        rotary_share=0.25,
    ),
    "stablelm": Family(roles=ROTATED_PART | {"layer": "layer_stablelm"}, qkv_only=True, rotary_share=0.25),
    "nemotron": Family(
        roles=ROTATED_PART
        | {
            "norm": "layer_norm_shifted",
            "attention": "attention_rotated_call",
            "own_tables": "pass",
            "mlp": "mlp_nested",
            "act": "relu_squared",
        },
        rotary_share=0.5,
    ),
    "glm": Family(
        roles=LLAMA
        | {"attention": "attention_rotated_call", "own_tables": "contiguous", "mlp": "mlp_fused", "sdpa/core": "core_flash_copy"},
        biases=frozenset({"q", "k", "v"}),
        qkv_only=True,
        rotary_share=0.5,
    ),
    "gemma": Family(roles=LLAMA | {"norm": "rms_norm_gemma", "act": "gelu", "embed": "embed_scaled"}, tied=True),
    "granite": Family(roles=LLAMA | {"layer": "layer_granite", "embed": "embed_scaled", "head": "head_scaled"}),
    "arcee": Family(roles=LLAMA | {"mlp": "mlp_nested", "act": "relu_squared"}),
    "apertus": Family(roles=LLAMA | {"attention": "attention_gemma3", "mlp": "mlp_nested", "act": "xielu"}),
    "seed_oss": Family(roles=DROPPED, biases=frozenset({"q", "k", "v"}), qkv_only=True),
    "starcoder2": Family(
        roles=DROPPED | {"norm": "layer_norm", "mlp": "mlp_plain", "dropout_mlp": "dropout_hidden", "act": "gelu"},
        biases=EVERY_LINEAR,
        tied=True,
        windowed=True,
    ),
    "smollm3": Family(roles=LLAMA | {"nope/rope": "pass"}, tied=True, pattern=("rope",) * 3 + ("nope",)),
    "olmo3": Family(
        roles=LLAMA | {"layer": "layer_post_norm", "norm": "rms_norm_olmo", "attention": "attention_olmo2"},
        rope_tables=4,  # fp32, one pair for each kind of layer
        masks=2,
        flags=frozenset({"tables_by_kind"}),
        windowed=True,
        pattern=("local",) * 3 + ("global",),
    ),
    **encoder.FAMILIES,
    **seq2seq.FAMILIES,
    **clip.FAMILIES,
}
"""Families whose walk equals traced models to 1e-3; `gpt` is the textbook's layer."""
