"""What each framework does when a job does not say: one table, each row with its source.

A row for `*` holds for every framework without a row of its own. Values are text, as the job document writes them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """The value of a field that a job of this framework does not state."""

    framework: str
    field: str
    value: str
    source: str


_ROWS = """
* | framework.name | huggingface | peakgate: the framework most jobs use
operations | framework.name | torch | peakgate: a plain network is trained by a plain loop
* | batch.gradient_accumulation_steps | 1 | transformers training_args.py: gradient_accumulation_steps=1
* | batch.packed | true | peakgate: every sequence is full
* | batch.sequence_length_is | exact | peakgate: the stated length is the data's own
* | method.name | sft | peakgate: one model, every parameter in use
* | method.reference | none | peakgate: one model
dpo | method.reference | full | TRL trainer/dpo_trainer.py: ref_model is made from the model's own files
kto | method.reference | full | TRL experimental/kto/kto_trainer.py: ref_model is made from the model's own files
ppo | method.reference | full | TRL experimental/ppo/ppo_trainer.py: ref_policy
* | method.sequences_per_example | 1 | TRL trainer/grpo_config.py: per_device_train_batch_size counts sequences
dpo | method.sequences_per_example | 2 | TRL trainer/dpo_trainer.py: chosen and rejected answers are one batch
orpo | method.sequences_per_example | 2 | TRL experimental/orpo/orpo_trainer.py: concatenated_inputs
reward | method.sequences_per_example | 2 | TRL trainer/reward_trainer.py: chosen and rejected answers are one batch
* | precision.recipe | fp32 | transformers training_args.py: bf16=False, fp16=False
textbook | precision.recipe | deepspeed-bf16 | ML Systems, Lesson 6, section 3: 16 bytes per parameter
megatron | precision.recipe | megatron-bf16 | Megatron-LM examples/: --bf16 in every pretraining script
torchtitan | precision.recipe | fsdp-bf16 | torchtitan config: training.mixed_precision_param = bfloat16
torchtune | precision.recipe | bf16 | torchtune recipes/configs: dtype: bf16
litgpt | precision.recipe | bf16 | litgpt config_hub/finetune: precision: bf16-true (the scripts alone: bf16-mixed, none with four bits)
composer | precision.recipe | fsdp-bf16 | llm-foundry scripts/train/yamls: precision: amp_bf16 with fsdp_config
deepspeed | precision.recipe | fp32 | deepspeed runtime/constants.py: BFLOAT16_ENABLED_DEFAULT = False
* | optimizer.name | adamw | transformers training_args.py: optim = adamw_torch…
megatron | loss.implementation | vocab-parallel | Megatron-LM arguments.py: --cross-entropy-loss-fusion is off
megatron | checkpointing.reentrant | true | Megatron-LM core/tensor_parallel/random.py: CheckpointFunction runs an inner backward pass
megatron | framework.megatron.transformer_impl | transformer_engine | Megatron-LM arguments.py: --transformer-impl
megatron | framework.megatron.gradient_accumulation_fusion | true | Megatron-LM arguments.py: --no-gradient-accumulation-fusion turns it off
megatron | optimizer.name | adam | Megatron-LM arguments.py: --optimizer adam
* | optimizer.implementation | foreach | torch/optim/adamw.py: foreach when no implementation is named
huggingface | optimizer.implementation | fused | transformers training_args.py: adamw_torch_fused from torch 2.8 on
megatron | optimizer.implementation | fused | Megatron-LM optimizer/__init__.py: Transformer Engine or Apex FusedAdam
colossalai | optimizer.implementation | fused | colossalai/nn/optimizer/hybrid_adam.py: HybridAdam
deepspeed | optimizer.implementation | fused | deepspeed ops/adam: FusedAdam
torchtitan | optimizer.implementation | fused | torchtitan config: optimizer.implementation = fused
composer | optimizer.implementation | foreach | llm-foundry optim: DecoupledAdamW over torch foreach kernels
torchtune | optimizer.implementation | fused | torchtune recipes/configs/llama3_2/3B_lora_single_device.yaml: optimizer.fused
* | optimizer.in_backward | false | torch: the step runs after the backward pass
* | optimizer.set_to_none | true | torch/optim/optimizer.py: zero_grad(set_to_none=True)
* | attention.implementation | sdpa | transformers modeling_utils.py: sdpa where the model supports it
textbook | attention.implementation | eager | ML Systems, Lesson 6, section 3: the theorem counts the attention core
megatron | attention.implementation | flash | Megatron-LM transformer_config.py: attention_backend auto with Transformer Engine
composer | attention.implementation | flash | llm-foundry: attn_config.attn_impl: flash
* | attention.mask | none | peakgate: no mask is handed to the model
* | checkpointing.mode | none | transformers training_args.py: gradient_checkpointing=False
* | checkpointing.every | 1 | torch.utils.checkpoint around each layer
* | checkpointing.reentrant | false | transformers 5: use_reentrant=False
* | loss.implementation | full | transformers loss/loss_utils.py: cross_entropy of all logits
torchtune | loss.implementation | full | torchtune recipes/configs before 0.3: torch.nn.CrossEntropyLoss
litgpt | loss.implementation | chunked | litgpt finetune/lora.py: lm_head_chunk_size=128, chunked_cross_entropy
* | loss.keep_logits | false | transformers trainer.py compute_loss: outputs are local
colossalai | loss.keep_logits | true | applications/ColossalChat/coati/trainer/sft.py: the model's outputs stay named through the step
textbook | loss.keep_logits | true | ML Systems, Lesson 6, section 3: 4sbV stays in the sum
torch | loss.keep_logits | true | a plain loop: `logits` stays a local until it is bound again
* | lora.method | lora | peft tuners/lora/config.py: use_dora=False
* | lora.rank | 8 | peft tuners/lora/config.py: r=8
* | lora.dropout | 0 | peft tuners/lora/config.py: lora_dropout=0.0
* | lora.targets | q_proj, v_proj | peft utils/constants.py: TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
* | lora.double_quant | false | transformers utils/quantization_config.py: bnb_4bit_use_double_quant=False
* | lora.adapter_dtype | float32 | peft tuners/tuners_utils.py: autocast_adapter_dtype=True
litgpt | lora.adapter_dtype | parameters | litgpt finetune/lora.py: fabric.init_module in the run's precision
torchtune | lora.adapter_dtype | parameters | torchtune recipes/lora_finetune_single_device.py: set_default_dtype
litgpt | framework.version | before 0.1 | Lit-GPT's scripts had no versions; the longest sample comes first (finetune/lora.py)
* | framework.bitsandbytes | 0.45 | bitsandbytes autograd/_functions.py from 0.43 on: MatMul4Bit keeps (None, B)
litgpt | framework.bitsandbytes | 0.42.0 | litgpt pyproject.toml at 5895df10: bitsandbytes==0.42.0
* | parallelism.sharding | ddp | torch: data parallel ranks hold a whole model each
torchtitan | parallelism.sharding | fsdp | torchtitan config: data_parallel_shard_degree = -1
torchtune | parallelism.sharding | fsdp | torchtune full_finetune_distributed: fully_shard
litgpt | parallelism.sharding | fsdp | litgpt: FSDPStrategy when devices > 1
composer | parallelism.sharding | fsdp | llm-foundry scripts/train/yamls: fsdp_config
* | parallelism.sequence_parallel | false | Megatron-LM arguments.py: --sequence-parallel is off
torchtitan | parallelism.sequence_parallel | true | torchtitan models/llama3/infra/parallelize.py: apply_tp
* | parallelism.context_type | all-gather | torch/distributed/tensor/experimental/_context_parallel/_attention.py: rotate_method
megatron | parallelism.context_type | ring | Megatron-LM arguments.py: --cp-comm-type p2p
deepspeed | parallelism.context_type | ulysses | deepspeed/sequence/layer.py: DistributedAttention
* | parallelism.pipeline_schedule | 1f1b | Megatron-LM pipeline_parallel/schedules.py
* | framework.expandable_segments | false | c10/core/AllocatorConfig.h
torchtitan | framework.expandable_segments | true | torchtitan run_train.sh: PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
* | framework.fsdp.version | 1 | accelerate utils/dataclasses.py FullyShardedDataParallelPlugin: fsdp_version = 1
torchtitan | framework.fsdp.version | 2 | torchtitan models/llama3/infra/parallelize.py: fully_shard
torchtune | framework.fsdp.version | 2 | torchtune training/_distributed.py: fully_shard
torch | framework.fsdp.version | 2 | torch.distributed.fsdp.fully_shard: FSDP1 is deprecated
* | precision.fp8.recipe | delayed | Megatron-LM core/transformer/transformer_config.py: fp8_recipe = "delayed"
* | precision.fp8.param_gather | false | Transformer Engine and torchao: switched on by hand
torchtitan | precision.fp8.param_gather | true | torchtitan docs/float8.md: the launch line has --float8.enable_fsdp_float8_all_gather
torchtitan | checkpointing.mode | selective | torchtitan config: activation_checkpoint.mode = "selective"
* | framework.ddp.gradient_as_bucket_view | false | torch/nn/parallel/distributed.py
* | framework.ddp.bucket_cap_mb | 25 | torch/nn/parallel/distributed.py
* | framework.fsdp.reshard_after_forward | true | torch/distributed/fsdp/_fully_shard/_fully_shard.py
* | framework.zero.reduce_bucket_size | 500000000 | deepspeed/runtime/zero/config.py
colossalai | framework.zero.reduce_bucket_size | 12582912 | colossalai/booster/plugin/low_level_zero_plugin.py: reduce_bucket_size_in_m = 12
* | framework.zero.overlap_comm | false | deepspeed/runtime/zero/config.py
* | framework.zero.max_live_parameters | 1000000000 | deepspeed/runtime/zero/config.py
* | node.gpus | 8 | peakgate: the common size of a GPU node
* | offload.optimizer | none | states stay on the GPU
* | offload.parameters | none | parameters stay on the GPU
* | offload.activations | none | activations stay on the GPU
"""


def _parse(text: str) -> tuple[Default, ...]:
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return tuple(Default(framework=f, field=p, value=v, source=s) for f, p, v, s in rows)


DEFAULTS = _parse(_ROWS)

_BY_KEY = {(row.framework, row.field): row for row in DEFAULTS}


def default_of(framework: str, field: str) -> Default:
    """The framework's own row, or that of every framework; raises KeyError for a field without a default."""
    return _BY_KEY.get((framework, field)) or _BY_KEY["*", field]
