"""torchtune's built-in configs: what `--config llama3_1/8B_lora_single_device` says.

Source: torchtune recipes/configs at bd2a0fc7c, the names as torchtune/_recipe_registry.py has them: what changes memory, and no more.
"""

from __future__ import annotations

from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.settings import Settings

WORDS = {
    "checkpointing": ("enable_activation_checkpointing=true",),
    "offloading": ("enable_activation_offloading=true",),
    "in_backward": ("optimizer_in_bwd=true",),
    "mlp": ("model.apply_lora_to_mlp=true",),
    "qvo": ("model.lora_attn_modules=q_proj,v_proj,output_proj",),
    "dora": ("model.use_dora=true",),
    "packed": ("dataset.packed=true",),
    "sharded": ("custom_sharded_layers=tok_embeddings,output",),
    "sharded1": ("custom_sharded_layers=tok_embeddings",),
    "adamw": ("optimizer._component_=torch.optim.AdamW",),
    "fused": ("optimizer._component_=torch.optim.AdamW", "optimizer.fused=true"),
    "paged": ("optimizer._component_=bitsandbytes.optim.PagedAdamW",),
    "paged8": ("optimizer._component_=bitsandbytes.optim.PagedAdamW8bit",),
    "dpo": ("loss._component_=torchtune.rlhf.loss.DPOLoss",),
    "ppo": ("loss._component_=torchtune.rlhf.loss.PPOLoss",),
    "grpo": ("loss._component_=torchtune.dev.grpo.loss.GRPOSimpleLoss",),
    "chunked": ("loss._component_=torchtune.modules.loss.CEWithChunkedOutputLoss",),
}
KEYS = {
    "b": "batch_size",
    "a": "gradient_accumulation_steps",
    "s": "tokenizer.max_seq_len",
    "r": "model.lora_rank",
    "teacher": "teacher_model._component_",
    "policy": "policy_model._component_",
}
EVERY = ("dtype=bf16", "loss._component_=torchtune.modules.loss.LinearCrossEntropyLoss")

_ROWS = """
dev/3B_full_grpo llama3_2.llama3_2_3b b=1 checkpointing fused grpo
dev/qwen3B_sync_grpo qwen2_5.qwen2_5_3b b=1 checkpointing fused  s=1024 grpo
dev/qwen3B_async_grpo qwen2_5.qwen2_5_3b s=1024 grpo
llama2/7B_full_low_memory llama2.llama2_7b b=2 in_backward checkpointing offloading paged
llama3/8B_full_single_device llama3.llama3_8b b=2 in_backward checkpointing paged8
llama3_1/8B_full_single_device llama3_1.llama3_1_8b b=2 in_backward checkpointing paged8
llama3_2/1B_full_single_device llama3_2.llama3_2_1b b=4 in_backward paged8
llama3_2/3B_full_single_device llama3_2.llama3_2_3b b=4 in_backward checkpointing paged8
mistral/7B_full_low_memory mistral.mistral_7b b=2 in_backward checkpointing offloading paged
phi3/mini_full_low_memory phi3.phi3_mini b=2 in_backward checkpointing offloading paged
phi4/14B_full_low_memory phi4.phi4_14b b=2 in_backward checkpointing offloading paged
qwen2/7B_full_single_device qwen2.qwen2_7b b=2 in_backward checkpointing paged
qwen2/0.5B_full_single_device qwen2.qwen2_0_5b b=2 a=8 checkpointing fused
qwen2/1.5B_full_single_device qwen2.qwen2_1_5b b=2 in_backward checkpointing paged
qwen2_5/0.5B_full_single_device qwen2_5.qwen2_5_0_5b b=2 a=8 fused
qwen2_5/1.5B_full_single_device qwen2_5.qwen2_5_1_5b_instruct b=4 in_backward checkpointing paged
qwen2_5/3B_full_single_device qwen2_5.qwen2_5_3b b=2 in_backward checkpointing paged
qwen2_5/7B_full_single_device qwen2_5.qwen2_5_7b_instruct b=2 in_backward checkpointing paged
llama3_2_vision/11B_full_single_device llama3_2_vision.llama3_2_vision_11b b=2 a=8 checkpointing paged8 s=8192
qwen3/0.6B_full_single_device qwen3.qwen3_0_6b_instruct b=2 a=8 fused
qwen3/1.7B_full_single_device qwen3.qwen3_1_7b_instruct b=4 fused
qwen3/4B_full_single_device qwen3.qwen3_4b_instruct b=2 checkpointing fused
qwen3/8B_full_single_device qwen3.qwen3_8b_instruct b=2 in_backward checkpointing paged
llama2/7B_full llama2.llama2_7b b=2 checkpointing fused
llama2/13B_full llama2.llama2_13b b=2 checkpointing fused
llama3/8B_full llama3.llama3_8b b=2 checkpointing sharded fused
llama3_1/8B_full llama3_1.llama3_1_8b b=2 checkpointing sharded fused
llama3_2/1B_full llama3_2.llama3_2_1b b=4 a=8 fused
llama3_2/3B_full llama3_2.llama3_2_3b b=4 a=8 checkpointing fused
llama3/70B_full llama3.llama3_70b b=2 checkpointing fsdp_cpu_offload=true sharded tensor_parallel_dim=1 adamw
llama3_1/70B_full llama3_1.llama3_1_70b b=2 checkpointing fsdp_cpu_offload=true sharded tensor_parallel_dim=1 adamw
llama3_3/70B_full llama3_3.llama3_3_70b b=2 checkpointing fsdp_cpu_offload=true sharded tensor_parallel_dim=1 adamw
llama3_3/70B_full_multinode llama3_3.llama3_3_70b b=4 compile=true checkpointing sharded tensor_parallel_dim=8 tensor_parallel_plan._component_=base_llama_tp_plan fused s=1024
mistral/7B_full mistral.mistral_7b b=2 checkpointing fused
gemma/2B_full gemma.gemma_2b b=2 checkpointing fused
gemma/7B_full gemma.gemma_7b b=1 checkpointing fused
gemma2/2B_full gemma2.gemma2_2b b=2 checkpointing fused
gemma2/9B_full gemma2.gemma2_9b b=1 checkpointing fused
gemma2/27B_full gemma2.gemma2_27b b=1 checkpointing fused
phi3/mini_full phi3.phi3_mini b=2 a=8 checkpointing fused
phi4/14B_full phi4.phi4_14b b=2 a=8 checkpointing fused
qwen2/7B_full qwen2.qwen2_7b b=2 a=8 checkpointing fused
qwen2/0.5B_full qwen2.qwen2_0_5b b=2 a=8 fused
qwen2/1.5B_full qwen2.qwen2_1_5b b=2 fused
qwen2_5/0.5B_full qwen2_5.qwen2_5_0_5b b=2 a=8 fused
qwen2_5/1.5B_full qwen2_5.qwen2_5_1_5b_instruct b=2 checkpointing fused
qwen2_5/3B_full qwen2_5.qwen2_5_3b b=2 a=8 checkpointing fused
qwen2_5/7B_full qwen2_5.qwen2_5_7b_instruct b=2 a=8 checkpointing fused
llama3_2_vision/11B_full llama3_2_vision.llama3_2_vision_11b b=2 a=8 checkpointing sharded1 fused s=8192
llama3_2_vision/90B_full llama3_2_vision.llama3_2_vision_90b b=2 a=8 checkpointing sharded1 fused s=8192
llama4/scout_17B_16E_full llama4.llama4_scout_17b_16e b=1 checkpointing fsdp_cpu_offload=true tensor_parallel_dim=2 adamw
llama4/maverick_17B_128E_full llama4.llama4_maverick_17b_128e b=1 checkpointing fsdp_cpu_offload=true tensor_parallel_dim=8 adamw
qwen3/0.6B_full qwen3.qwen3_0_6b_instruct b=2 a=8 fused
qwen3/1.7B_full qwen3.qwen3_1_7b_instruct b=2 fused
qwen3/4B_full qwen3.qwen3_4b_instruct b=2 a=8 checkpointing fused
qwen3/8B_full qwen3.qwen3_8b_instruct b=2 a=8 checkpointing fused
llama2/7B_lora_single_device llama2.lora_llama2_7b b=2 a=8 checkpointing qvo mlp r=8 fused
llama2/7B_qlora_single_device llama2.qlora_llama2_7b b=2 a=8 checkpointing qvo mlp r=8 fused
llama3/8B_lora_single_device llama3.lora_llama3_8b b=2 a=8 checkpointing qvo mlp r=8 fused
llama3_1/8B_lora_single_device llama3_1.lora_llama3_1_8b b=2 a=8 checkpointing qvo mlp r=8 fused
llama3/8B_qlora_single_device llama3.qlora_llama3_8b b=2 a=8 checkpointing qvo mlp r=8 fused
llama3_2/1B_lora_single_device llama3_2.lora_llama3_2_1b b=4 a=8 qvo mlp r=64 fused
llama3_2/3B_lora_single_device llama3_2.lora_llama3_2_3b b=4 a=8 checkpointing qvo mlp r=64 fused
llama3/8B_dora_single_device llama3.lora_llama3_8b b=2 a=8 checkpointing qvo mlp r=8 dora fused
llama3/8B_qdora_single_device llama3.lora_llama3_8b b=2 a=8 checkpointing qvo mlp r=8 dora model.quantize_base=true fused
llama3_1/8B_qlora_single_device llama3_1.qlora_llama3_1_8b b=2 a=8 checkpointing qvo mlp r=8 fused
llama3_2/1B_qlora_single_device llama3_2.qlora_llama3_2_1b b=4 a=8 qvo mlp r=64 fused
llama3_2/3B_qlora_single_device llama3_2.qlora_llama3_2_3b b=4 a=8 checkpointing qvo mlp r=64 fused
llama2/13B_qlora_single_device llama2.qlora_llama2_13b b=2 a=8 checkpointing qvo mlp r=8 fused
mistral/7B_lora_single_device mistral.lora_mistral_7b b=4 a=8 checkpointing qvo mlp model.apply_lora_to_output=true r=64 fused
mistral/7B_qlora_single_device mistral.qlora_mistral_7b b=4 a=8 checkpointing qvo mlp r=64 fused
gemma/2B_lora_single_device gemma.lora_gemma_2b b=4 a=8 checkpointing qvo mlp r=64 fused
gemma/2B_qlora_single_device gemma.qlora_gemma_2b b=4 a=8 checkpointing qvo mlp r=64 fused
gemma/7B_lora_single_device gemma.lora_gemma_7b b=8 a=8 checkpointing qvo mlp r=8 fused
gemma/7B_qlora_single_device gemma.qlora_gemma_7b b=4 a=8 checkpointing qvo mlp r=64 fused
gemma2/2B_lora_single_device gemma2.lora_gemma2_2b b=8 a=8 checkpointing qvo mlp r=64 fused
gemma2/2B_qlora_single_device gemma2.qlora_gemma2_2b b=4 a=8 checkpointing qvo mlp r=64 fused
gemma2/9B_lora_single_device gemma2.lora_gemma2_9b b=8 a=8 checkpointing qvo mlp r=8 fused
gemma2/9B_qlora_single_device gemma2.qlora_gemma2_9b b=4 a=8 checkpointing qvo mlp r=64 fused
gemma2/27B_lora_single_device gemma2.lora_gemma2_27b b=2 a=8 checkpointing qvo mlp r=8 fused
gemma2/27B_qlora_single_device gemma2.qlora_gemma2_27b b=4 a=8 checkpointing qvo mlp r=64 fused
phi3/mini_lora_single_device phi3.lora_phi3_mini b=2 a=8 checkpointing qvo mlp r=8 fused
phi3/mini_qlora_single_device phi3.qlora_phi3_mini b=2 a=8 checkpointing qvo mlp r=8 fused
phi4/14B_lora_single_device phi4.lora_phi4_14b b=2 a=8 checkpointing qvo mlp r=8 fused
phi4/14B_qlora_single_device phi4.qlora_phi4_14b b=2 a=8 checkpointing qvo mlp r=8 fused
qwen2/7B_lora_single_device qwen2.lora_qwen2_7b b=2 a=8 checkpointing qvo mlp r=8 fused
qwen2/0.5B_lora_single_device qwen2.lora_qwen2_0_5b b=4 a=8 checkpointing qvo mlp r=32 fused
qwen2/1.5B_lora_single_device qwen2.lora_qwen2_1_5b b=2 a=8 checkpointing qvo mlp r=32 fused
qwen2_5/0.5B_lora_single_device qwen2_5.lora_qwen2_5_0_5b b=2 a=8 qvo mlp r=32 fused
qwen2_5/1.5B_lora_single_device qwen2_5.lora_qwen2_5_1_5b_instruct b=2 a=8 qvo mlp r=32 fused
qwen2_5/3B_lora_single_device qwen2_5.lora_qwen2_5_3b b=2 a=8 checkpointing qvo mlp r=8 fused
qwen2_5/7B_lora_single_device qwen2_5.lora_qwen2_5_7b_instruct b=2 a=8 checkpointing qvo mlp r=8 fused
qwen2_5/14B_lora_single_device qwen2_5.lora_qwen2_5_14b_instruct b=2 a=8 checkpointing qvo mlp r=8 fused
llama3_2_vision/11B_lora_single_device llama3_2_vision.lora_llama3_2_vision_11b b=2 a=8 checkpointing qvo mlp r=8 fused s=8192
llama3_2_vision/11B_qlora_single_device llama3_2_vision.qlora_llama3_2_vision_11b b=2 a=8 checkpointing qvo mlp r=8 fused s=8192
qwen3/0.6B_lora_single_device qwen3.lora_qwen3_0_6b_instruct b=2 a=8 qvo mlp r=32 fused
qwen3/1.7B_lora_single_device qwen3.lora_qwen3_1_7b_instruct b=2 a=8 qvo mlp r=32 fused
qwen3/4B_lora_single_device qwen3.lora_qwen3_4b_instruct b=2 a=8 checkpointing qvo mlp r=8 fused
qwen3/8B_lora_single_device qwen3.lora_qwen3_8b_instruct b=2 a=8 checkpointing qvo mlp r=8 fused
qwen3/14B_lora_single_device qwen3.lora_qwen3_14b_instruct b=2 a=8 checkpointing qvo mlp r=8 fused
llama2/7B_lora_dpo_single_device llama2.lora_llama2_7b b=4 a=8 checkpointing qvo mlp r=8 fused s=1024 dpo
llama3_1/8B_lora_dpo_single_device llama3_1.lora_llama3_1_8b b=4 a=8 checkpointing qvo mlp r=8 fused s=1024 dpo
llama2/7B_lora_dpo llama2.lora_llama2_7b b=4 a=8 checkpointing qvo mlp r=8 fused s=1024 dpo
llama3_1/8B_lora_dpo llama3_1.lora_llama3_1_8b b=4 a=8 checkpointing qvo mlp r=8 fused s=1024 dpo
llama3_1/8B_full_dpo llama3_1.llama3_1_8b b=4 a=8 checkpointing fused s=1024 dpo
mistral/7B_full_ppo_low_memory - b=128 compile=true in_backward checkpointing policy=mistral.mistral_7b paged s=512 ppo
llama2/1B_full_ppo_low_memory_single_device - b=16 in_backward checkpointing policy=llama2.llama2 policy_model.vocab_size=32000 policy_model.num_layers=22 policy_model.num_heads=32 policy_model.num_kv_heads=4 policy_model.embed_dim=2048 adamw s=512 ppo
llama2/7B_lora llama2.lora_llama2_7b b=2 a=8 qvo mlp r=8 fused
llama2/13B_lora llama2.lora_llama2_13b b=2 a=8 qvo mlp model.apply_lora_to_output=true r=8 fused
llama2/70B_lora llama2.lora_llama2_70b b=2 checkpointing qvo mlp r=16 fused
llama2/7B_qlora llama2.qlora_llama2_7b b=2 a=8 checkpointing qvo mlp r=8 fused
llama2/70B_qlora llama2.qlora_llama2_70b b=2 checkpointing qvo mlp r=16 fused
llama3/8B_dora llama3.lora_llama3_8b b=2 qvo mlp r=8 dora fused
llama3/70B_lora llama3.lora_llama3_70b b=2 checkpointing qvo mlp r=16 fused
llama3_1/70B_lora llama3_1.lora_llama3_1_70b b=2 checkpointing qvo mlp r=16 fused
llama3_3/70B_lora llama3_3.lora_llama3_3_70b b=2 checkpointing qvo mlp r=16 fused
llama3_3/70B_qlora llama3_3.qlora_llama3_3_70b b=2 checkpointing qvo mlp r=16 fused
llama3/8B_lora llama3.lora_llama3_8b b=2 a=8 qvo mlp r=8 fused
llama3_1/8B_lora llama3_1.lora_llama3_1_8b b=2 a=8 qvo mlp r=8 fused
llama3_2/1B_lora llama3_2.lora_llama3_2_1b b=4 a=8 qvo mlp r=64 fused
llama3_2/3B_lora llama3_2.lora_llama3_2_3b b=4 a=8 qvo mlp r=64 fused
llama3_1/405B_qlora llama3_1.qlora_llama3_1_405b b=1 a=8 checkpointing qvo mlp r=16 fused
mistral/7B_lora mistral.lora_mistral_7b b=4 checkpointing qvo mlp model.apply_lora_to_output=true r=64 fused
gemma/2B_lora gemma.lora_gemma_2b b=4 checkpointing qvo mlp r=64 fused
gemma/7B_lora gemma.lora_gemma_7b b=4 checkpointing qvo mlp r=64 fused
gemma2/2B_lora gemma2.lora_gemma2_2b b=4 checkpointing qvo mlp r=64 fused
gemma2/9B_lora gemma2.lora_gemma2_9b b=4 checkpointing qvo mlp r=64 fused
gemma2/27B_lora gemma2.lora_gemma2_27b b=4 checkpointing qvo mlp r=64 fused
phi3/mini_lora phi3.lora_phi3_mini b=2 a=8 qvo mlp r=8 fused
phi4/14B_lora phi4.lora_phi4_14b b=2 a=8 qvo mlp r=8 fused
qwen2/7B_lora qwen2.lora_qwen2_7b b=2 a=8 qvo mlp r=8 fused
qwen2/0.5B_lora qwen2.lora_qwen2_0_5b b=4 a=8 checkpointing qvo mlp r=32 fused
qwen2/1.5B_lora qwen2.lora_qwen2_1_5b b=2 a=8 checkpointing qvo mlp r=32 fused
qwen2_5/0.5B_lora qwen2_5.lora_qwen2_5_0_5b b=2 a=8 qvo mlp r=32 fused
qwen2_5/1.5B_lora qwen2_5.lora_qwen2_5_1_5b_instruct b=2 a=8 qvo mlp r=32 fused
qwen2_5/3B_lora qwen2_5.lora_qwen2_5_3b b=2 a=8 qvo mlp r=8 fused
qwen2_5/7B_lora qwen2_5.lora_qwen2_5_7b_instruct b=2 a=8 qvo mlp r=8 fused
qwen2_5/32B_lora qwen2_5.lora_qwen2_5_32b_instruct b=2 a=8 qvo mlp r=8 fused
qwen2_5/72B_lora qwen2_5.lora_qwen2_5_72b_instruct b=2 checkpointing qvo mlp r=8 fused
llama3_2_vision/11B_lora llama3_2_vision.lora_llama3_2_vision_11b b=2 a=8 checkpointing qvo mlp r=8 fused s=8192
llama3_2_vision/11B_qlora llama3_2_vision.qlora_llama3_2_vision_11b b=2 a=8 checkpointing qvo mlp r=8 fused s=8192
llama3_2_vision/90B_lora llama3_2_vision.lora_llama3_2_vision_90b b=2 a=8 checkpointing qvo mlp r=8 fused s=8192
llama3_2_vision/90B_qlora llama3_2_vision.qlora_llama3_2_vision_90b b=2 a=8 checkpointing qvo mlp r=8 fused s=8192
llama4/scout_17B_16E_lora llama4.lora_llama4_scout_17b_16e b=2 checkpointing sharded1 qvo mlp r=16 adamw
qwen3/0.6B_lora qwen3.lora_qwen3_0_6b_instruct b=2 a=8 qvo mlp r=32 fused
qwen3/1.7B_lora qwen3.lora_qwen3_1_7b_instruct b=2 a=8 qvo mlp r=32 fused
qwen3/4B_lora qwen3.lora_qwen3_4b_instruct b=2 a=8 qvo mlp r=8 fused
qwen3/8B_lora qwen3.lora_qwen3_8b_instruct b=2 a=8 qvo mlp r=8 fused
qwen3/32B_lora qwen3.lora_qwen3_32b b=2 a=8 qvo mlp r=8 fused
dev/11B_lora_multi_dataset llama3_2_vision.lora_llama3_2_vision_11b b=4 compile=true checkpointing model.lora_attn_modules=q_proj,v_proj r=8 fused s=8192
qwen2_5/3B_qat_single_device qwen2_5.qwen2_5_3b b=2 in_backward checkpointing paged
qwen2_5/1.5B_qat_single_device qwen2_5.qwen2_5_1_5b_instruct b=1 in_backward checkpointing paged
llama2/1B_qat_single_device llama2.llama2 b=1 in_backward checkpointing model.vocab_size=32000 model.num_layers=22 model.num_heads=32 model.num_kv_heads=4 model.embed_dim=2048 model.max_seq_len=2048 paged s=2048
llama2/7B_qat_full llama2.llama2_7b b=2 checkpointing fused
llama3/8B_qat_full llama3.llama3_8b b=2 checkpointing sharded fused
llama3_1/8B_qat_full llama3_1.llama3_1_8b b=2 checkpointing sharded fused
llama3_2/3B_qat_full llama3_2.llama3_2_3b b=4 a=8 checkpointing fused
llama3/8B_qat_lora llama3.lora_llama3_8b b=2 a=8 qvo mlp r=8 fused
llama3_1/8B_qat_lora llama3_1.lora_llama3_1_8b b=2 a=8 qvo mlp r=8 fused
llama3_2/1B_qat_lora llama3_2.lora_llama3_2_1b b=4 a=8 qvo mlp r=64 fused
llama3_2/3B_qat_lora llama3_2.lora_llama3_2_3b b=4 a=8 qvo mlp r=64 fused
qwen2/1.5_to_0.5B_KD_lora_single_device qwen2.lora_qwen2_0_5b b=8 a=8 qvo mlp r=32 teacher=qwen2.qwen2_1_5b adamw chunked
llama3_2/8B_to_1B_KD_lora_single_device llama3_2.lora_llama3_2_1b b=4 a=8 qvo mlp r=64 teacher=llama3_1.llama3_1_8b fused chunked
qwen3/14B_to_8B_KD_lora_single_device qwen3.lora_qwen3_8b_base b=2 a=8 checkpointing qvo mlp r=64 teacher=qwen3.qwen3_14b_instruct fused chunked
qwen2/1.5_to_0.5B_KD_lora_distributed qwen2.lora_qwen2_0_5b b=8 a=8 qvo mlp r=32 teacher=qwen2.qwen2_1_5b adamw chunked
llama3_2/8B_to_1B_KD_lora_distributed llama3_2.lora_llama3_2_1b b=4 a=8 qvo mlp r=64 teacher=llama3_1.llama3_1_8b fused chunked
"""  # noqa: E501 - a row is a line


def _pairs(cells: list[str]) -> tuple[str, ...]:
    pairs: list[str] = []
    for cell in cells:
        key, _, value = cell.partition("=")
        pairs += WORDS[cell] if cell in WORDS else [f"{KEYS.get(key, key)}={value}"]
    return tuple(pairs)


def _row(line: str) -> tuple[str, tuple[str, ...]]:
    name, model, *cells = line.split()
    builder = (f"model._component_=torchtune.models.{model}",) if model != "-" else ()
    return name, (*EVERY, *builder, *_pairs(cells))


CONFIGS = dict(map(_row, _ROWS.strip().splitlines()))
"""Name -> `key=value` of each setting that matters."""


def config_of(name: str) -> Settings | None:
    """The settings of a built-in config; None for another name."""
    pairs = CONFIGS.get(name.removesuffix(".yaml"))
    if pairs is None:
        return None
    place = Place(kind=DEFAULT, key=f"torchtune's {name}")
    return Settings({key: Stated(value, place) for key, _, value in (pair.partition("=") for pair in pairs)})
