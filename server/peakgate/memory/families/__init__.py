"""The model families: one row each, and the blocks that their rows name."""

from __future__ import annotations

from peakgate.memory.architecture import Family
from peakgate.memory.families import common, encoder, falcon, gemma, gpt, llama, moe, quantised, seq2seq

BLOCKS = (
    common.BLOCKS
    | gpt.BLOCKS
    | llama.BLOCKS
    | gemma.BLOCKS
    | falcon.BLOCKS
    | moe.BLOCKS
    | encoder.BLOCKS
    | seq2seq.BLOCKS
    | quantised.BLOCKS
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

FAMILIES: dict[str, Family] = {
    "gpt": Family(roles=GPT2 | {"embed": "embed_plain", "act": "gelu", "dropout_embedding": "pass"}, biases=EVERY_LINEAR, tied=True),
    "gpt2": Family(roles=GPT2, biases=EVERY_LINEAR, tied=True, positions="learned"),
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
    "gemma2": Family(roles=SANDWICH | {"soft_cap": "tanh_cap", "head": "head_capped"}, tied=True, masks=2),
    "gemma3": Family(
        roles=SANDWICH | {"attention": "attention_gemma3"},
        tied=True,
        masks=2,
        rope_tables=2,
        windowed=True,
        pattern=("local",) * 5 + ("global",),
    ),
    "mixtral": Family(roles=MOE),
    "qwen3_moe": Family(roles=MOE | {"attention": "attention_qwen3", "router_cast": "to_compute", "weigh_experts": "weigh"}),
    **encoder.FAMILIES,
    **seq2seq.FAMILIES,
}
"""Families whose walk equals traced models to 1e-3; `gpt` is the textbook's layer."""

STAND_INS: dict[str, str] = {
    "mpt": "gpt2",
    "bloom": "gpt2",
    "phi": "gpt_neox",
    "stablelm": "llama",
    "gemma": "gemma2",
    "nemotron": "opt",
    "arcee": "opt",
    "apertus": "qwen3",
    "seed_oss": "qwen2",
    "olmo3": "olmo2",
    "smollm3": "llama",
    "gpt_oss": "mixtral",
    "deepseek_v2": "mixtral",
    "deepseek_v3": "mixtral",
    "qwen2_moe": "mixtral",
    "clip": "vit",
    "gpt3": "gpt2",
}
"""Blocks without a row of their own yet, and the family whose kernels give a first figure; the answer is then UNDECIDED."""
