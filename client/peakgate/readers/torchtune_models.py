"""torchtune's model builders: the published model of each, and the family of a component builder whose sizes are given.

Source: torchtune models/*/_model_builders.py at bd2a0fc7c (and code_llama2 before its removal): every builder has the sizes of the
model whose weights it loads.
"""

from __future__ import annotations

import re

_ROWS = """
llama2_7b meta-llama/Llama-2-7b-hf
llama2_13b meta-llama/Llama-2-13b-hf
llama2_70b meta-llama/Llama-2-70b-hf
llama2_reward_7b meta-llama/Llama-2-7b-hf
code_llama2_7b codellama/CodeLlama-7b-hf
code_llama2_13b codellama/CodeLlama-13b-hf
code_llama2_70b codellama/CodeLlama-70b-hf
llama3_8b meta-llama/Meta-Llama-3-8B
llama3_70b meta-llama/Meta-Llama-3-70B
llama3_1_8b meta-llama/Llama-3.1-8B
llama3_1_70b meta-llama/Llama-3.1-70B
llama3_1_405b meta-llama/Llama-3.1-405B
llama3_2_1b meta-llama/Llama-3.2-1B
llama3_2_3b meta-llama/Llama-3.2-3B
llama3_3_70b meta-llama/Llama-3.3-70B-Instruct
llama3_2_vision_11b meta-llama/Llama-3.2-11B-Vision-Instruct
llama3_2_vision_90b meta-llama/Llama-3.2-90B-Vision-Instruct
llama4_scout_17b_16e meta-llama/Llama-4-Scout-17B-16E-Instruct
llama4_maverick_17b_128e meta-llama/Llama-4-Maverick-17B-128E-Instruct
mistral_7b mistralai/Mistral-7B-v0.1
mistral_reward_7b mistralai/Mistral-7B-v0.1
gemma_2b google/gemma-2b
gemma_7b google/gemma-7b
gemma2_2b google/gemma-2-2b
gemma2_9b google/gemma-2-9b
gemma2_27b google/gemma-2-27b
phi3_mini microsoft/Phi-3-mini-4k-instruct
phi4_14b microsoft/phi-4
qwen2_0_5b Qwen/Qwen2-0.5B
qwen2_1_5b Qwen/Qwen2-1.5B
qwen2_7b Qwen/Qwen2-7B
qwen2_5_0_5b Qwen/Qwen2.5-0.5B
qwen2_5_1_5b Qwen/Qwen2.5-1.5B
qwen2_5_3b Qwen/Qwen2.5-3B
qwen2_5_7b Qwen/Qwen2.5-7B
qwen2_5_14b Qwen/Qwen2.5-14B
qwen2_5_32b Qwen/Qwen2.5-32B
qwen2_5_72b Qwen/Qwen2.5-72B
qwen3_0_6b Qwen/Qwen3-0.6B
qwen3_1_7b Qwen/Qwen3-1.7B
qwen3_4b Qwen/Qwen3-4B
qwen3_8b Qwen/Qwen3-8B
qwen3_14b Qwen/Qwen3-14B
qwen3_32b Qwen/Qwen3-32B
smollm2_135m HuggingFaceTB/SmolLM2-135M
smollm2_360m HuggingFaceTB/SmolLM2-360M
smollm2_1_7b HuggingFaceTB/SmolLM2-1.7B
"""

PRESETS = dict(line.split() for line in _ROWS.strip().splitlines())
"""Builder without its prefix and suffix -> Hugging Face id."""

BLOCKS = {
    "llama2": "llama",
    "llama3": "llama",
    "llama3_1": "llama",
    "llama3_2": "llama",
    "mistral": "mistral",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
}
"""Component builder -> block of `model.transformer`."""

TIED = ("llama3_2", "gemma", "gemma2")
"""Component builders whose head is the embedding (TiedLinear)."""

SIZES = {
    "num_layers": "layers",
    "embed_dim": "hidden_size",
    "num_heads": "heads",
    "num_kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate_dim": "ffn_hidden_size",
    "vocab_size": "vocab_size",
}
"""Argument of a component builder -> field of `model.transformer`."""

_PREFIX = re.compile(r"^(q?lora|reward)_")
_SUFFIX = re.compile(r"_(base|instruct)$")


def plain(component: str) -> str:
    """The builder's name without what it makes of the model."""
    return _SUFFIX.sub("", _PREFIX.sub("", component.rsplit(".", 1)[-1]))


def is_adapted(component: str) -> bool:
    """Whether a builder adds adapters."""
    return component.rsplit(".", 1)[-1].startswith(("lora_", "qlora_"))


def is_quantised(component: str) -> bool:
    """Whether a builder stores the base in four bits (partial(…, quantize_base=True))."""
    return component.rsplit(".", 1)[-1].startswith("qlora_")


def feed_forward(width: int) -> int:
    """The width of a feed-forward part that is not stated (torchtune modules/common_utils.py: scale_hidden_dim_for_mlp)."""
    third = 4 * int(2 * width / 3)
    return 256 * (-(-third // 256))
