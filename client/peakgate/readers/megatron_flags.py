"""Names of one setting of Megatron: flags of earlier versions, and the config classes' own names, under the flag's name of today."""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.readers.convert import flag
from peakgate.readers.place import Stated
from peakgate.readers.settings import Settings

RENAMED: Mapping[str, str] = {
    "num_moe_experts": "num_experts",
    "fp8": "fp8_format",
    "fp8_param": "fp8_param_gather",
    "fp4": "fp4_format",
    "moe_expert_parallel_size": "expert_model_parallel_size",
    "moe_router_top_k": "moe_router_topk",
    "topk": "moe_router_topk",
    "num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "model_parallel_size": "tensor_model_parallel_size",
    "batch_size": "micro_batch_size",
    "activations_checkpoint_method": "recompute_method",
    "activations_checkpoint_num_layers": "recompute_num_layers",
    "checkpoint_num_layers": "recompute_num_layers",
    "activations_checkpoint_granularity": "recompute_granularity",
    "distribute_checkpointed_activations": "distribute_saved_activations",
    "recompute_activation": "recompute_activations",
    "use_flash_attn_v1": "use_flash_attn",
    "enable_cuda_graphs": "enable_cuda_graph",
    "moe_layer_frequency": "moe_layer_freq",
    "apply_squared_relu": "squared_relu",
    "gated_linear_units": "gated_linear_unit",
    "add_position_embedding": "",
    "fp16_lm_loss": "fp16_lm_cross_entropy",
    "deepspeed_config": "ds_config",
    "pad_vocab_size_to": "vocab_size",  # bigscience's Megatron-DeepSpeed: what the tokenizer's words are padded to
}
"""Other name -> flag; empty: it says nothing. Sources: arguments.py of core_v0.2.0 to today; ModelParallelConfig, TransformerConfig."""

OPPOSITE: Mapping[str, str] = {
    "disable_bias_linear": "add_bias_linear",
    "no_bias_linear": "add_bias_linear",
    "share_embeddings_and_output_weights": "untie_embeddings_and_output_weights",
    "gradient_accumulation_fusion": "no_gradient_accumulation_fusion",
    "no_store_param_remainders": "store_param_remainders",
}
"""Other name -> the flag that says the opposite."""


def canonical(settings: Settings) -> Settings:
    """The same settings under the flags' names; a flag of today wins over an earlier name of it."""
    leaves: dict[str, Stated] = {}
    for name, stated in settings.leaves.items():
        if name in OPPOSITE:
            leaves.setdefault(OPPOSITE[name], _opposite(stated))
        elif target := RENAMED.get(name, name):
            if target == name:
                leaves[name] = stated
            else:
                leaves.setdefault(target, stated)
    _whole_checkpoints(leaves, settings("activations_checkpoint_method"))
    return Settings(leaves)


def _opposite(stated: Stated) -> Stated:
    try:
        return Stated(not flag(stated), stated.place)
    except ValueError:
        return stated


def _whole_checkpoints(leaves: dict[str, Stated], legacy: Stated | None) -> None:
    """--checkpoint-activations and --activations-checkpoint-method: full recomputation (release 2.5; Megatron-DeepSpeed)."""
    old = leaves.get("checkpoint_activations") or legacy
    if (
        "recompute_granularity" not in leaves
        and "recompute_activations" not in leaves
        and old is not None
        and old.value not in (False, None)
    ):
        leaves["recompute_granularity"] = Stated("full", old.place)
