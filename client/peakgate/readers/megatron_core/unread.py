"""Settings of Megatron Core that change memory and that a job document has no words for, by flag name."""

from __future__ import annotations

from peakgate.readers.megatron_core.options import Options

SWITCHES = {
    "fp32_residual_connection": "residual connections in fp32",
    "fp16_lm_cross_entropy": "a loss of 16-bit logits",
    "moe_shared_expert_gate": "a gate of the shared experts",
    "attention_output_gate": "a gate of the attention's output",
    "enable_mhc_connections": "several residual streams",
    "fine_grained_activation_offloading": "activations of parts of layers in the host's memory",
    "freeze_all_layers": "a model that is not trained",
    "use_nccl_ub": "buffers that NCCL registers",
    "nccl_ub": "buffers that NCCL registers",
    "overlap_moe_expert_parallel_comm": "two micro-batches at a time, to hide the exchange of tokens",
    "delay_wgrad_compute": "weight gradients that are made later",
    "moe_paged_stash": "a stash for activations of experts",
    "moe_use_upcycling": "a dense model that becomes a mixture of experts",
    "use_kitchen": "products of the Kitchen library",
    "mtp_use_repeated_layer": "one layer for every further token",
    "perform_rl_step": "rollouts of reinforcement learning inside the run",
    "moe_single_grouped_weight": "experts' weights as one tensor",
    "retro_add_retriever": "a retriever beside the model",
    "kd": "distillation from a teacher",
    "mos": "distillation from a teacher",
    "use_legacy_models": "layers of the legacy model code",
    "partial_checkpoints": "recomputation in some micro-batches or layers only",
    "random_ltd": "tokens that layers drop at random",
}
"""Off unless they are stated."""

STATED = {
    "heterogeneous_layers_config_path": "layers that differ from one another",
    "heterogeneous_layers_config_encoded_json": "layers that differ from one another",
    "experimental_attention_variant": "another kind of attention",
    "linear_attention_freq": "linear attention in some layers",
    "moe_latent_size": "experts of a narrower width than the model's",
    "model_provider": "a model that a provider puts together",
    "language_model_type": "a vision tower beside the language model",
    "vision_model_type": "a vision tower beside the language model",
    "kitchen_config_file": "products of the Kitchen library",
    "kitchen_recipe_number": "products of the Kitchen library",
    "te_precision_config_file": "formats that differ from layer to layer",
    "logits_load_dir": "distillation from stored logits",
    "lora_rank": "adapters of a fork of Megatron-LM",
    "kd_teacher_load": "distillation from a teacher",
    "load_teacher": "distillation from a teacher",
    "export_kd_teacher_load": "distillation from a teacher",
    "pipeline_model_parallel_split_rank": "a pipeline split between encoder and decoder",
    "encoder_tensor_model_parallel_size": "an encoder with degrees of its own",
    "encoder_pipeline_model_parallel_size": "an encoder with degrees of its own",
}
"""Whatever is stated."""

SMALL = {
    "tp_comm_overlap": "user buffers of tensor parallel communication, a few times the size of a layer's input, are not counted",
    "first_last_layers_bf16": "the first and last layers in bf16 are counted in 8 bits like the others",
}
"""Less than a layer keeps: a warning is enough."""


def read_unread(options: Options) -> None:
    """Notes each of them that is on."""
    for name, what in SWITCHES.items():
        if options.on(name):
            options.cannot_say(what, name)
    for name, what in STATED.items():
        stated = options(name)
        if stated is not None and stated.text not in ("0", "1", "false"):
            options.cannot_say(what, name)
    for name, what in SMALL.items():
        if options.on(name):
            options.reading.warnings.append(f"{options.place(name)}: {what}")
    if options.on("use_checkpoint_args"):
        options.cannot_say("sizes of the model come from the checkpoint", "use_checkpoint_args")
