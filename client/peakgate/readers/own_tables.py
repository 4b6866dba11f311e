"""The defaults of frameworks' own programs for what a launch leaves out: one table, each row with its source.

Columns: table | field | value | when | settings that decide otherwise, the field's own switch first | source. `when` is one of
`own_defaults.CONDITIONS`.

Left open, since it is not the framework that decides: whether a batch has padding (attention.mask, the data's), versions that are
installed (framework.*, optimizer.implementation of transformers' Trainer, which is torch's), the attention kernel that Transformer Engine
finds, dropout that the model's own config gives, ms-swift's logits (kept where labels are, trainers/mixin.py: get_use_logits_to_keep),
TRL's loss of fine-tuning (whole logits until 1.6, chunks later), the losses of GRPO and PPO but verl's, the allocator (a variable of the
submitter's shell or of the image), and what the scripts of a user do.
Versions: as in each reader's own docstring.
"""

ROWS = """
axolotl | checkpointing.mode | none | * | gradient_checkpointing | Axolotl (schemas/config.py: gradient_checkpointing: false)
axolotl | optimizer.name | adamw | * | optimizer | Axolotl (schemas/training.py: optimizer: adamw_torch_fused)
axolotl | attention.implementation | sdpa | * | attn_implementation flash_attention xformers_attention flex_attention sage_attention sdp_attention eager_attention s2_attention gemma4_hybrid_attn_impl | Axolotl (loaders/model.py: _set_attention_config leaves it to transformers: sdpa)
axolotl | loss.implementation | full | text | chunked_cross_entropy | Axolotl without a plugin for the loss: transformers loss/loss_utils.py
axolotl | loss.implementation | full | pairs | trl.use_liger_loss dpo_use_liger_kernel | Axolotl (core/trainers/dpo): TRL's selective_log_softmax of all logits
llama-factory | optimizer.name | adamw | * | optim use_galore use_apollo use_badam use_adam_mini use_muon | transformers (training_args.py: optim=adamw_torch…)
llama-factory | attention.implementation | sdpa | no other attention | flash_attn | LLaMA-Factory (model_utils/attention.py: auto leaves it to transformers: sdpa)
llama-factory | loss.implementation | full | text | enable_liger_kernel use_asft_loss use_dft_loss use_eaft_loss | transformers (loss/loss_utils.py: cross_entropy of all logits)
llama-factory | loss.implementation | full | pairs |  | LLaMA-Factory (train/{dpo,kto}/trainer.py: all logits in float32)
llama-factory 1 | loss.implementation | full | text | | LLaMA-Factory (v1 core/base_trainer.py: the trainer asks for all logits)
ms-swift | optimizer.name | adamw | * | optim optimizer use_galore | transformers (training_args.py: optim=adamw_torch…)
ms-swift | attention.implementation | sdpa | unpacked + auto attention | attn_impl | ms-swift (model/utils.py: AttnImpl leaves it to transformers: sdpa)
ms-swift megatron | optimizer.name | adam | * | optimizer | ms-swift (megatron/arguments/megatron_args.py: optimizer=adam)
ms-swift megatron | loss.implementation | vocab-parallel | text | use_liger_kernel | Megatron-LM (core/models/common/language_module: vocabulary parallel cross entropy)
ms-swift megatron | parallelism.sequence_parallel | false | tensor | sequence_parallel | ms-swift (megatron/arguments/megatron_args.py: sequence_parallel=False)
ms-swift megatron | parallelism.context_type | ring | context | cp_comm_type | Transformer Engine (attention: cp_comm_type=p2p)
several ranks | parallelism.sharding | ddp | * | deepspeed fsdp fsdp_config dp_shard_size tensor_parallel_size | transformers (training_args.py: DistributedDataParallel without deepspeed and fsdp)
megatron | checkpointing.mode | none | * | recompute_granularity recompute_activations checkpoint_activations moe_layer_recompute | Megatron-LM (training/arguments.py: --recompute-granularity is None)
megatron | optimizer.name | adam | * | optimizer | Megatron-LM (training/arguments.py: --optimizer adam)
megatron | loss.implementation | vocab-parallel | * | | Megatron-LM (core/models/common/language_module: vocab_parallel_cross_entropy)
megatron | parallelism.sequence_parallel | false | tensor | sequence_parallel | Megatron-LM (core/model_parallel_config.py: sequence_parallel=False)
megatron | parallelism.context_type | ring | context | cp_comm_type hierarchical_context_parallel_sizes hybrid_context_parallel | Megatron-LM (training/arguments.py: --cp-comm-type p2p)
megatron | parallelism.sharding | ddp | * | use_distributed_optimizer use_torch_fsdp2 use_megatron_fsdp use_custom_fsdp | Megatron-LM (training/arguments.py: --use-distributed-optimizer is off)
megatron-deepspeed | checkpointing.mode | none | * | recompute_granularity recompute_activations checkpoint_activations deepspeed_activation_checkpointing | Megatron-DeepSpeed (megatron/arguments.py: --recompute-granularity is None)
megatron-deepspeed | loss.implementation | full | * | | Megatron-DeepSpeed (megatron/model/gpt_model.py: cross entropy of all logits)
megatron-deepspeed | parallelism.sequence_parallel | false | tensor | sequence_parallel | Megatron-DeepSpeed (megatron/arguments.py: --sequence-parallel is off)
megatron-bridge | checkpointing.mode | none | * | recompute_granularity recompute_activations | Megatron-Bridge (recipes/common.py over TransformerConfig: recompute_granularity=None)
megatron-bridge | optimizer.name | adam | * | optimizer | Megatron-Bridge (recipes/utils/optimizer_utils.py: distributed_fused_adam…)
megatron-bridge | loss.implementation | vocab-parallel | * | | Megatron-LM (core/models/common/language_module: vocabulary parallel cross entropy)
megatron-bridge | parallelism.sequence_parallel | false | tensor | sequence_parallel | Megatron-LM (core/model_parallel_config.py: sequence_parallel=False)
megatron-bridge | parallelism.context_type | ring | context | cp_comm_type | Transformer Engine (attention: cp_comm_type=p2p)
megatron-bridge | parallelism.sharding | ddp | * | use_distributed_optimizer use_torch_fsdp2 use_megatron_fsdp use_custom_fsdp | Megatron-LM (DistributedDataParallelConfig: use_distributed_optimizer=False)
nemo | checkpointing.mode | none | * | recompute_granularity | NeMo (megatron_gpt_config.yaml: activations_checkpoint_granularity: null)
nemo | loss.implementation | vocab-parallel | * | | Megatron-LM (core/tensor_parallel/cross_entropy.py)
nemo | parallelism.sequence_parallel | false | tensor | sequence_parallel | NeMo (megatron_gpt_config.yaml: sequence_parallel: False)
nemo | parallelism.context_type | ring | context | cp_comm_type | Transformer Engine (attention: cp_comm_type=p2p)
torchtitan | optimizer.name | adamw | * | optimizer.name | torchtitan (config/job_config.py: Optimizer.name="AdamW")
torchtitan toml | loss.implementation | full | * | | torchtitan (components/loss.py: cross_entropy_loss of all logits)
torchtitan | precision.recipe | fsdp-bf16 | fsdp | training.mixed_precision_param training.dtype | torchtitan (config/job_config.py: Training.mixed_precision_param="bfloat16")
torchtitan | parallelism.sequence_parallel | true | tensor | parallelism.enable_sequence_parallel | torchtitan (models/llama3/infra/parallelize.py: apply_tp)
torchtitan | parallelism.context_type | all-gather | context | parallelism.context_parallel_rotate_method | torchtitan (config/job_config.py: context_parallel_rotate_method="allgather")
torchtune | checkpointing.mode | none | * | enable_activation_checkpointing ac_mode | torchtune's recipes: enable_activation_checkpointing = False
torchtune | optimizer.in_backward | false | * | optimizer_in_bwd | torchtune's recipes: optimizer_in_bwd = False
litgpt | loss.implementation | chunked | * | | litgpt (utils.py: chunked_cross_entropy)
litgpt | attention.implementation | sdpa | no other attention | | litgpt (model.py: scaled_dot_product_attention)
litgpt pretrain | checkpointing.mode | none | * | | litgpt (pretrain.py: FSDPStrategy without activation_checkpointing_policy)
litgpt finetune | checkpointing.mode | none | one rank | | litgpt (finetune/*.py: activation_checkpointing_policy of FSDP alone)
litgpt finetune | optimizer.implementation | foreach | * | quantize optimizer | litgpt (utils.py: instantiate_torch_optimizer names no implementation)
composer | checkpointing.mode | none | * | fsdp_config.activation_checkpointing | composer (utils/parallelism.py: activation_checkpointing=False)
composer | attention.implementation | eager | preset | model.attn_implementation model.use_flash_attention_2 model.config_overrides.attn_implementation | llm-foundry (models/hf/hf_base.py, build_inner_model: eager when nothing is named)
composer | loss.implementation | full | * | | llm-foundry (models/mpt/modeling_mpt.py: a cross entropy of all logits)
openrlhf | checkpointing.mode | none | * | gradient_checkpointing | OpenRLHF (cli/train_*.py: gradient_checkpointing_enable is off)
openrlhf | loss.implementation | full | text | | OpenRLHF (models/utils.py: log_probs_from_logits of all logits)
openrlhf | loss.implementation | full | pairs | | OpenRLHF (models/utils.py: log_probs_from_logits of all logits)
verl | loss.implementation | full | * | actor_rollout_ref.model.use_fused_kernels model.use_fused_kernels model.use_liger | verl (workers/actor/dp_actor.py, trainer/fsdp_sft_trainer.py: all logits; hf_model.yaml: use_fused_kernels: False)
verl megatron | checkpointing.mode | none | * | actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity | verl (trainer/config/engine/megatron.yaml: recompute_granularity: null)
verl megatron | optimizer.name | adam | * | actor_rollout_ref.actor.optim.optimizer | verl (trainer/config/optim/megatron.yaml: optimizer: adam)
trl | attention.implementation | sdpa | * | attn_implementation use_flash_attn use_flash_attention_2 | TRL (scripts/*.py: attn_implementation=None leaves it to transformers: sdpa)
trl | optimizer.name | adamw | * | optim adafactor | transformers (training_args.py: optim=adamw_torch…)
trl | loss.implementation | full | pairs | use_liger_kernel use_liger_loss | TRL (trainer/{dpo,kto}_trainer.py: selective_log_softmax of all logits)
trl before 0.20 | checkpointing.mode | none | * | gradient_checkpointing | transformers (training_args.py: gradient_checkpointing=False)
trl before 0.20 | loss.implementation | full | text | use_liger_kernel use_liger | TRL before 0.20: transformers' cross_entropy of all logits
huggingface | attention.implementation | sdpa | * | attn_implementation use_flash_attn use_flash_attention_2 | transformers (modeling_utils.py: sdpa where the model supports it)
huggingface | checkpointing.mode | none | * | gradient_checkpointing | transformers (training_args.py: gradient_checkpointing=False)
huggingface | optimizer.name | adamw | * | optim adafactor | transformers (training_args.py: optim=adamw_torch…)
huggingface alone | precision.recipe | fp32 | float32 checkpoint | fp16 bf16 mixed_precision deepspeed | transformers (training_args.py: bf16=False, fp16=False)
huggingface tokens | loss.implementation | full | * | use_liger_kernel | transformers (loss/loss_utils.py: cross_entropy of all logits)
"""  # noqa: E501 - a row is a line
