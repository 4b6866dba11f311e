"""Megatron-Bridge's recipes: the model and what its factory sets, one row a recipe.

Source: Megatron-Bridge at 067f987d (August 2026), src/megatron/bridge/recipes/*/{h100,gb200}/*.py and their short names in
recipes/*/*.py, over recipes/common.py (_pretrain_common, _sft_common, _peft_common). Recipes of hybrid, multimodal and diffusion models
are left out. Columns: full name and short name without `_config`; Hugging Face id; settings (`TOKENS`), where 1 and off are not written.
"""

from __future__ import annotations

from dataclasses import dataclass

RECIPES = """
deepseek_v2_lite_pretrain_8gpu_h100_bf16 | deepseek_v2_lite_pretrain | deepseek-ai/DeepSeek-V2-Lite | ep=8 seq=4096 mbs=1 gbs=512 overlap cef full uniform=1
deepseek_v2_pretrain_128gpu_h100_bf16 | deepseek_v2_pretrain | deepseek-ai/DeepSeek-V2 | pp=4 ep=32 seq=4096 mbs=1 gbs=512 overlap cef full uniform=1
deepseek_v3_pretrain_1024gpu_h100_bf16 | deepseek_v3_pretrain | deepseek-ai/DeepSeek-V3 | tp=2 pp=16 ep=64 etp=1 sp seq=4096 mbs=1 gbs=4096 overlap cef grads=bf16 aware=fp32,bf16,bf16,bf16 mtp=1
deepseek_v3_pretrain_256gpu_h100_bf16_32nodes | deepseek_v3_pretrain_config_32nodes | deepseek-ai/DeepSeek-V3 | tp=2 pp=8 ep=32 etp=1 sp seq=4096 mbs=1 gbs=4096 overlap cef full uniform=1 grads=bf16 aware=fp32,bf16,bf16,bf16 mtp=1
gemma2_2b_pretrain_2gpu_h100_bf16 | gemma2_2b_pretrain | google/gemma-2-2b | tp=2 seq=4096 mbs=2 gbs=32 cef
gemma2_9b_pretrain_8gpu_h100_bf16 | gemma2_9b_pretrain | google/gemma-2-9b | tp=8 seq=4096 mbs=2 gbs=32 cef
gemma2_27b_pretrain_16gpu_h100_bf16 | gemma2_27b_pretrain | google/gemma-2-27b | tp=8 pp=2 seq=4096 mbs=2 gbs=32 cef
gemma2_2b_sft_1gpu_h100_bf16 | gemma2_2b_sft | google/gemma-2-2b | seq=2048 mbs=1 gbs=128 overlap cef
gemma2_9b_sft_4gpu_h100_bf16 | gemma2_9b_sft | google/gemma-2-9b | tp=4 seq=2048 mbs=1 gbs=128 overlap cef
gemma2_27b_sft_16gpu_h100_bf16 | gemma2_27b_sft | google/gemma-2-27b | tp=8 pp=2 seq=2048 mbs=1 gbs=128 overlap cef
gemma2_2b_peft_1gpu_h100_bf16 | gemma2_2b_peft | google/gemma-2-2b | seq=2048 mbs=1 gbs=128 replicated cef
gemma2_9b_peft_1gpu_h100_bf16 | gemma2_9b_peft | google/gemma-2-9b | seq=2048 mbs=1 gbs=128 replicated cef
gemma2_27b_peft_4gpu_h100_bf16 | gemma2_27b_peft | google/gemma-2-27b | tp=4 seq=2048 mbs=1 gbs=128 replicated cef
gemma3_1b_sft_1gpu_h100_bf16 | gemma3_1b_sft | google/gemma-3-1b-pt | seq=4096 mbs=1 gbs=32 overlap cef
gemma3_1b_peft_1gpu_h100_bf16 | gemma3_1b_peft | google/gemma-3-1b-pt | seq=4096 mbs=1 gbs=32 overlap
glm45_355b_pretrain_128gpu_h100_bf16 | glm45_355b_pretrain | zai-org/GLM-4.5 | tp=2 pp=8 ep=16 etp=1 sp seq=4096 mbs=1 gbs=2048 overlap cef selective first=10 last=10 mtp=1
glm45_air_106b_pretrain_32gpu_h100_bf16 | glm45_air_106b_pretrain | zai-org/GLM-4.5-Air | pp=4 ep=8 sp seq=4096 mbs=1 gbs=2048 overlap cef selective first=11 last=11 mtp=1
glm45_355b_sft_128gpu_h100_bf16 | glm45_355b_sft | zai-org/GLM-4.5 | tp=2 pp=8 ep=16 seq=2048 mbs=1 gbs=128 cef first=10 last=10
glm45_air_106b_sft_32gpu_h100_bf16 | glm45_air_106b_sft | zai-org/GLM-4.5-Air | pp=4 ep=8 seq=2048 mbs=1 gbs=128 cef first=11 last=11
glm45_355b_peft_16gpu_h100_bf16 | glm45_355b_peft | zai-org/GLM-4.5 | tp=2 pp=4 ep=4 seq=2048 mbs=1 gbs=128 cef
glm45_air_106b_peft_8gpu_h100_bf16 | glm45_air_106b_peft | zai-org/GLM-4.5-Air | pp=2 ep=4 seq=2048 mbs=1 gbs=128 cef
gpt_oss_20b_pretrain_16gpu_h100_bf16 | gpt_oss_20b_pretrain | openai/gpt-oss-20b | tp=2 pp=4 ep=4 etp=1 sp seq=4096 mbs=1 gbs=512 overlap cef cp_comm=a2a
gpt_oss_120b_pretrain_64gpu_h100_bf16 | gpt_oss_120b_pretrain | openai/gpt-oss-120b | tp=2 pp=4 ep=16 etp=1 sp seq=4096 mbs=1 gbs=512 overlap cef cp_comm=a2a
gpt_oss_20b_pretrain_16gpu_h100_fp8cs | gpt_oss_20b_pretrain_fp8_current_scaling | openai/gpt-oss-20b | tp=2 pp=4 ep=4 etp=1 sp seq=4096 mbs=1 gbs=512 overlap cef precision=bf16_with_fp8_current_scaling_mixed cp_comm=a2a
gpt_oss_20b_sft_8gpu_h100_bf16 | gpt_oss_20b_sft | openai/gpt-oss-20b | ep=8 seq=2048 mbs=1 gbs=128 cef
gpt_oss_20b_sft_8gpu_h100_bf16_32k | gpt_oss_20b_sft_32k | openai/gpt-oss-20b | ep=8 seq=32768 mbs=1 gbs=32 cef
gpt_oss_120b_sft_32gpu_h100_bf16 | gpt_oss_120b_sft | openai/gpt-oss-120b | pp=4 ep=8 seq=2048 mbs=1 gbs=128 cef
gpt_oss_120b_sft_48gpu_h100_bf16_32k | gpt_oss_120b_sft_32k | openai/gpt-oss-120b | tp=2 pp=6 cp=4 ep=4 sp seq=32768 mbs=1 gbs=4 selective modules=moe_act cp_comm=a2a
gpt_oss_20b_sft_8gpu_h100_fp8cs | gpt_oss_20b_sft_fp8_current_scaling | openai/gpt-oss-20b | ep=8 seq=2048 mbs=1 gbs=128 cef precision=bf16_with_fp8_current_scaling_mixed
gpt_oss_20b_peft_1gpu_h100_bf16 | gpt_oss_20b_peft | openai/gpt-oss-20b | seq=2048 mbs=1 gbs=128 cef
gpt_oss_120b_peft_8gpu_h100_bf16 | gpt_oss_120b_peft | openai/gpt-oss-120b | ep=8 seq=2048 mbs=1 gbs=128 cef
gpt_oss_20b_peft_1gpu_h100_fp8cs | gpt_oss_20b_peft_fp8_current_scaling | openai/gpt-oss-20b | seq=2048 mbs=1 gbs=128 cef precision=bf16_with_fp8_current_scaling_mixed
gpt_oss_20b_pretrain_16gpu_h100_fp8mx | gpt_oss_20b_pretrain_mxfp8 | openai/gpt-oss-20b | tp=2 pp=4 ep=4 etp=1 sp seq=4096 mbs=1 gbs=512 overlap cef precision=bf16_with_mxfp8_mixed cp_comm=a2a
gpt_oss_20b_sft_8gpu_h100_fp8mx | gpt_oss_20b_sft_mxfp8 | openai/gpt-oss-20b | ep=8 seq=2048 mbs=1 gbs=128 cef precision=bf16_with_mxfp8_mixed
gpt_oss_20b_peft_1gpu_h100_fp8mx | gpt_oss_20b_peft_mxfp8 | openai/gpt-oss-20b | seq=2048 mbs=1 gbs=128 cef precision=bf16_with_mxfp8_mixed
gpt_oss_20b_sft_8gpu_h100_bf16_openmathinstruct2_thinking_packed | gpt_oss_20b_sft_openmathinstruct2_thinking_packed | openai/gpt-oss-20b | ep=8 seq=2048 mbs=1 gbs=128 cef
kimi_k2_pretrain_512gpu_h100_bf16 | kimi_k2_pretrain | moonshotai/Kimi-K2-Instruct | tp=2 pp=16 ep=32 etp=1 sp seq=4096 mbs=1 gbs=4096 overlap cef selective
llama2_7b_pretrain_2gpu_h100_bf16 | llama2_7b_pretrain | meta-llama/Llama-2-7b-hf | tp=2 seq=4096 mbs=1 gbs=512 overlap cef
llama32_1b_pretrain_1gpu_h100_bf16 | llama32_1b_pretrain | meta-llama/Llama-3.2-1B | seq=8192 mbs=1 gbs=512 overlap cef
llama32_3b_pretrain_1gpu_h100_bf16 | llama32_3b_pretrain | meta-llama/Llama-3.2-3B | seq=8192 mbs=1 gbs=512 overlap cef
llama3_8b_pretrain_2gpu_h100_bf16 | llama3_8b_pretrain | meta-llama/Meta-Llama-3-8B | cp=2 seq=8192 mbs=1 gbs=512 overlap cef
llama3_8b_pretrain_16gpu_h100_bf16_16k | llama3_8b_16k_pretrain | meta-llama/Meta-Llama-3-8B | tp=4 pp=2 cp=2 sp seq=16384 mbs=1 gbs=512 overlap cef
llama3_8b_pretrain_32gpu_h100_bf16_64k | llama3_8b_64k_pretrain | meta-llama/Meta-Llama-3-8B | tp=4 pp=2 cp=4 sp seq=65536 mbs=1 gbs=512 overlap cef
llama3_8b_pretrain_64gpu_h100_bf16_128k | llama3_8b_128k_pretrain | meta-llama/Meta-Llama-3-8B | tp=4 pp=2 cp=8 sp seq=131072 mbs=1 gbs=512 overlap cef
llama3_8b_pretrain_2gpu_h100_fp8mx | - | meta-llama/Meta-Llama-3-8B | cp=2 seq=8192 mbs=1 gbs=768 overlap cef precision=mixed_precision_recipe
llama3_8b_pretrain_2gpu_h100_fp8cs | llama3_8b_low_precision_pretrain | meta-llama/Meta-Llama-3-8B | cp=2 seq=8192 mbs=1 gbs=768 overlap cef precision=mixed_precision_recipe
llama3_8b_pretrain_2gpu_h100_nvfp4 | - | meta-llama/Meta-Llama-3-8B | cp=2 seq=8192 mbs=1 gbs=768 overlap cef precision=mixed_precision_recipe
llama3_70b_pretrain_32gpu_h100_bf16 | llama3_70b_pretrain | meta-llama/Meta-Llama-3-70B | tp=4 pp=4 vp=5 cp=2 sp seq=8192 mbs=1 gbs=512 overlap cef
llama3_70b_pretrain_32gpu_h100_bf16_deterministic | llama3_70b_pretrain_deterministic | meta-llama/Meta-Llama-3-70B | tp=4 pp=4 vp=5 cp=2 sp seq=8192 mbs=1 gbs=512 overlap cef
llama3_70b_pretrain_32gpu_h100_bf16_16k | llama3_70b_16k_pretrain | meta-llama/Meta-Llama-3-70B | tp=8 pp=2 cp=2 sp seq=16384 mbs=1 gbs=512 overlap cef
llama3_70b_pretrain_256gpu_h100_bf16_64k | llama3_70b_64k_pretrain | meta-llama/Meta-Llama-3-70B | tp=8 pp=4 cp=8 sp seq=65536 mbs=1 gbs=512 overlap cef
llama31_8b_pretrain_2gpu_h100_bf16 | llama31_8b_pretrain | meta-llama/Meta-Llama-3.1-8B | cp=2 seq=8192 mbs=1 gbs=512 overlap cef
llama31_70b_pretrain_32gpu_h100_bf16 | llama31_70b_pretrain | meta-llama/Meta-Llama-3.1-70B | tp=4 pp=4 vp=5 cp=2 sp seq=131072 mbs=1 gbs=512 overlap cef
llama31_405b_pretrain_256gpu_h100_bf16 | llama31_405b_pretrain | meta-llama/Meta-Llama-3.1-405B | tp=8 pp=8 vp=2 cp=4 sp seq=131072 mbs=1 gbs=512 overlap cef ends
llama31_405b_pretrain_256gpu_h100_bf16_deterministic | llama31_405b_pretrain_deterministic | meta-llama/Meta-Llama-3.1-405B | tp=8 pp=8 vp=2 cp=4 sp seq=131072 mbs=1 gbs=512 overlap cef ends
llama32_1b_sft_1gpu_h100_bf16 | llama32_1b_sft | meta-llama/Llama-3.2-1B | seq=4096 mbs=1 gbs=8 cef
llama32_3b_sft_1gpu_h100_bf16 | llama32_3b_sft | meta-llama/Llama-3.2-3B | seq=4096 mbs=1 gbs=8 cef
llama3_8b_sft_2gpu_h100_bf16 | llama3_8b_sft | meta-llama/Meta-Llama-3-8B | tp=2 seq=4096 mbs=1 gbs=8 cef
llama31_8b_sft_2gpu_h100_bf16 | llama31_8b_sft | meta-llama/Meta-Llama-3.1-8B | tp=2 seq=4096 mbs=1 gbs=8 cef
llama3_70b_sft_32gpu_h100_bf16 | llama3_70b_sft | meta-llama/Meta-Llama-3-70B | tp=8 pp=4 seq=4096 mbs=1 gbs=8 cef
llama31_70b_sft_32gpu_h100_bf16 | llama31_70b_sft | meta-llama/Meta-Llama-3.1-70B | tp=8 pp=4 seq=4096 mbs=1 gbs=8 cef
llama31_405b_sft_128gpu_h100_bf16 | llama31_405b_sft | meta-llama/Meta-Llama-3.1-405B | tp=8 pp=16 sp seq=2048 mbs=1 gbs=16 overlap cef grads=bf16 ends
llama32_1b_peft_1gpu_h100_bf16 | llama32_1b_peft | meta-llama/Llama-3.2-1B | seq=4096 mbs=1 gbs=8 replicated
llama32_3b_peft_1gpu_h100_bf16 | llama32_3b_peft | meta-llama/Llama-3.2-3B | seq=4096 mbs=1 gbs=8 replicated
llama3_8b_peft_1gpu_h100_bf16 | llama3_8b_peft | meta-llama/Meta-Llama-3-8B | seq=4096 mbs=1 gbs=8 replicated
llama31_8b_peft_1gpu_h100_bf16 | llama31_8b_peft | meta-llama/Meta-Llama-3.1-8B | seq=4096 mbs=1 gbs=8 replicated
llama3_70b_peft_8gpu_h100_bf16 | llama3_70b_peft | meta-llama/Meta-Llama-3-70B | tp=8 seq=4096 mbs=1 gbs=8 replicated
llama31_70b_peft_8gpu_h100_bf16 | llama31_70b_peft | meta-llama/Meta-Llama-3.1-70B | tp=8 seq=4096 mbs=1 gbs=8 replicated
llama31_405b_peft_32gpu_h100_bf16 | llama31_405b_peft | meta-llama/Meta-Llama-3.1-405B | tp=4 pp=8 vp=8 sp seq=2048 mbs=1 gbs=32 replicated grads=bf16 ends
ministral3_3b_sft_1gpu_h100_bf16 | ministral3_3b_sft | mistralai/Ministral-3-3B-Instruct-2512 | seq=4096 mbs=1 gbs=32 cef
ministral3_8b_sft_2gpu_h100_bf16 | ministral3_8b_sft | mistralai/Ministral-3-8B-Instruct-2512 | tp=2 seq=4096 mbs=1 gbs=32 cef
ministral3_14b_sft_4gpu_h100_bf16 | ministral3_14b_sft | mistralai/Ministral-3-14B-Instruct-2512 | tp=4 seq=4096 mbs=1 gbs=32 cef
ministral3_3b_peft_1gpu_h100_bf16 | ministral3_3b_peft | mistralai/Ministral-3-3B-Instruct-2512 | seq=4096 mbs=1 gbs=32 cef
ministral3_8b_peft_1gpu_h100_bf16 | ministral3_8b_peft | mistralai/Ministral-3-8B-Instruct-2512 | seq=4096 mbs=1 gbs=32 cef
ministral3_14b_peft_2gpu_h100_bf16 | ministral3_14b_peft | mistralai/Ministral-3-14B-Instruct-2512 | tp=2 seq=4096 mbs=1 gbs=32 cef
moonlight_16b_pretrain_8gpu_h100_bf16 | - | moonshotai/Moonlight-16B-A3B | tp=2 ep=8 etp=1 sp seq=4096 mbs=1 gbs=2048 overlap cef selective grads=bf16 aware=fp32,bf16,bf16,bf16
moonlight_16b_pretrain_16gpu_h100_bf16 | moonlight_16b_pretrain | moonshotai/Moonlight-16B-A3B | ep=8 seq=4096 mbs=2 gbs=1024 overlap cef grads=bf16 aware=fp32,bf16,bf16,bf16 flex
moonlight_16b_sft_8gpu_h100_bf16 | - | moonshotai/Moonlight-16B-A3B | seq=2048 mbs=1 gbs=128 cef
moonlight_16b_sft_8gpu_h100_bf16_tp1 | moonlight_16b_sft | moonshotai/Moonlight-16B-A3B | ep=8 seq=8192 mbs=1 gbs=8 cef grads=bf16 aware=fp32,bf16,bf16,bf16 flex
moonlight_16b_sft_8gpu_h100_bf16_8k | moonlight_16b_sft_8k | moonshotai/Moonlight-16B-A3B | tp=2 cp=2 ep=8 etp=1 sp seq=8192 mbs=1 gbs=128 grads=bf16 aware=fp32,bf16,bf16,bf16
moonlight_16b_peft_2gpu_h100_bf16 | - | moonshotai/Moonlight-16B-A3B | seq=4096 mbs=1 gbs=128 overlap cef grads=bf16 aware=fp32,bf16,bf16,bf16
moonlight_16b_peft_4gpu_h100_bf16 | moonlight_16b_peft | moonshotai/Moonlight-16B-A3B | ep=4 seq=2048 mbs=1 gbs=128 overlap cef grads=bf16 aware=fp32,bf16,bf16,bf16
olmoe_7b_pretrain_8gpu_h100_bf16 | olmoe_7b_pretrain | allenai/OLMoE-1B-7B-0125 | seq=4096 mbs=1 gbs=2048 overlap cef grads=bf16 aware=fp32,bf16,bf16,bf16
olmoe_7b_sft_8gpu_h100_bf16 | olmoe_7b_sft | allenai/OLMoE-1B-7B-0125 | seq=4096 mbs=1 gbs=128 overlap cef grads=bf16 aware=fp32,bf16,bf16,bf16
olmoe_7b_peft_1gpu_h100_bf16 | olmoe_7b_peft | allenai/OLMoE-1B-7B-0125 | seq=4096 mbs=1 gbs=128 overlap cef grads=bf16 aware=fp32,bf16,bf16,bf16
qwen3_30b_a3b_pretrain_8gpu_gb200_fp8mx_functional | - | Qwen/Qwen3-30B-A3B | ep=8 seq=4096 mbs=4 gbs=512 overlap cef precision=bf16_with_mxfp8_mixed grads=bf16 flex graphs=transformer_engine
qwen2_500m_pretrain_1gpu_h100_bf16 | qwen2_500m_pretrain | Qwen/Qwen2-0.5B | seq=4096 mbs=2 gbs=32 cef
qwen2_1p5b_pretrain_1gpu_h100_bf16 | qwen2_1p5b_pretrain | Qwen/Qwen2-1.5B | seq=4096 mbs=2 gbs=32 cef
qwen2_7b_pretrain_2gpu_h100_bf16 | qwen2_7b_pretrain | Qwen/Qwen2-7B | tp=2 seq=4096 mbs=2 gbs=32 cef
qwen2_72b_pretrain_32gpu_h100_bf16 | qwen2_72b_pretrain | Qwen/Qwen2-72B | tp=8 pp=4 seq=4096 mbs=2 gbs=32 cef
qwen25_500m_pretrain_1gpu_h100_bf16 | qwen25_500m_pretrain | Qwen/Qwen2.5-0.5B | seq=4096 mbs=2 gbs=32 cef
qwen25_1p5b_pretrain_1gpu_h100_bf16 | qwen25_1p5b_pretrain | Qwen/Qwen2.5-1.5B | seq=4096 mbs=2 gbs=32 cef
qwen25_7b_pretrain_2gpu_h100_bf16 | qwen25_7b_pretrain | Qwen/Qwen2.5-7B | tp=2 seq=4096 mbs=2 gbs=32 cef
qwen25_14b_pretrain_4gpu_h100_bf16 | qwen25_14b_pretrain | Qwen/Qwen2.5-14B | tp=4 seq=4096 mbs=2 gbs=32 cef
qwen25_32b_pretrain_16gpu_h100_bf16 | qwen25_32b_pretrain | Qwen/Qwen2.5-32B | tp=8 pp=2 seq=4096 mbs=2 gbs=32 cef
qwen25_72b_pretrain_32gpu_h100_bf16 | qwen25_72b_pretrain | Qwen/Qwen2.5-72B | tp=8 pp=4 seq=4096 mbs=2 gbs=32 cef
qwen2_500m_sft_1gpu_h100_bf16 | qwen2_500m_sft | Qwen/Qwen2-0.5B | seq=2048 mbs=1 gbs=128 overlap cef
qwen2_1p5b_sft_1gpu_h100_bf16 | qwen2_1p5b_sft | Qwen/Qwen2-1.5B | seq=2048 mbs=1 gbs=128 overlap cef
qwen2_7b_sft_2gpu_h100_bf16 | qwen2_7b_sft | Qwen/Qwen2-7B | tp=2 seq=2048 mbs=1 gbs=128 overlap cef
qwen2_72b_sft_32gpu_h100_bf16 | qwen2_72b_sft | Qwen/Qwen2-72B | tp=8 pp=4 seq=2048 mbs=1 gbs=128 overlap cef
qwen25_500m_sft_1gpu_h100_bf16 | qwen25_500m_sft | Qwen/Qwen2.5-0.5B | seq=2048 mbs=1 gbs=128 overlap cef
qwen25_1p5b_sft_1gpu_h100_bf16 | qwen25_1p5b_sft | Qwen/Qwen2.5-1.5B | seq=2048 mbs=1 gbs=128 overlap cef
qwen25_7b_sft_2gpu_h100_bf16 | qwen25_7b_sft | Qwen/Qwen2.5-7B | tp=2 seq=2048 mbs=1 gbs=128 overlap cef
qwen25_14b_sft_4gpu_h100_bf16 | qwen25_14b_sft | Qwen/Qwen2.5-14B | tp=4 seq=2048 mbs=1 gbs=128 overlap cef
qwen25_32b_sft_16gpu_h100_bf16 | qwen25_32b_sft | Qwen/Qwen2.5-32B | tp=8 pp=2 seq=2048 mbs=1 gbs=128 overlap cef
qwen25_72b_sft_32gpu_h100_bf16 | qwen25_72b_sft | Qwen/Qwen2.5-72B | tp=8 pp=4 seq=2048 mbs=1 gbs=128 overlap cef
qwen2_500m_peft_1gpu_h100_bf16 | qwen2_500m_peft | Qwen/Qwen2-0.5B | seq=2048 mbs=1 gbs=128 cef
qwen2_1p5b_peft_1gpu_h100_bf16 | qwen2_1p5b_peft | Qwen/Qwen2-1.5B | seq=2048 mbs=1 gbs=128 cef
qwen2_7b_peft_1gpu_h100_bf16 | qwen2_7b_peft | Qwen/Qwen2-7B | seq=2048 mbs=1 gbs=128 cef
qwen2_72b_peft_8gpu_h100_bf16 | qwen2_72b_peft | Qwen/Qwen2-72B | tp=8 seq=2048 mbs=1 gbs=128 cef
qwen25_500m_peft_1gpu_h100_bf16 | qwen25_500m_peft | Qwen/Qwen2.5-0.5B | seq=2048 mbs=1 gbs=128 cef
qwen25_1p5b_peft_1gpu_h100_bf16 | qwen25_1p5b_peft | Qwen/Qwen2.5-1.5B | seq=2048 mbs=1 gbs=128 cef
qwen25_7b_peft_1gpu_h100_bf16 | qwen25_7b_peft | Qwen/Qwen2.5-7B | seq=2048 mbs=1 gbs=128 cef
qwen25_14b_peft_1gpu_h100_bf16 | qwen25_14b_peft | Qwen/Qwen2.5-14B | seq=2048 mbs=1 gbs=128 cef
qwen25_32b_peft_8gpu_h100_bf16 | qwen25_32b_peft | Qwen/Qwen2.5-32B | tp=8 seq=2048 mbs=1 gbs=128 cef
qwen25_72b_peft_8gpu_h100_bf16 | qwen25_72b_peft | Qwen/Qwen2.5-72B | tp=8 seq=2048 mbs=1 gbs=128 cef
qwen3_600m_pretrain_1gpu_h100_bf16 | qwen3_600m_pretrain | Qwen/Qwen3-0.6B | seq=4096 mbs=2 gbs=32 overlap cef
qwen3_1p7b_pretrain_1gpu_h100_bf16 | qwen3_1p7b_pretrain | Qwen/Qwen3-1.7B | seq=4096 mbs=2 gbs=32 overlap cef
qwen3_4b_pretrain_2gpu_h100_bf16 | qwen3_4b_pretrain | Qwen/Qwen3-4B | tp=2 seq=4096 mbs=2 gbs=32 overlap cef
qwen3_8b_pretrain_4gpu_h100_bf16 | - | Qwen/Qwen3-8B | tp=4 seq=4096 mbs=2 gbs=32 overlap cef
qwen3_8b_pretrain_16gpu_h100_bf16 | qwen3_8b_pretrain | Qwen/Qwen3-8B | seq=4096 mbs=1 gbs=1024 overlap cef grads=bf16 aware=fp32,fp32,fp32,fp32
qwen3_14b_pretrain_8gpu_h100_bf16 | qwen3_14b_pretrain | Qwen/Qwen3-14B | tp=8 seq=4096 mbs=2 gbs=32 overlap cef
qwen3_32b_pretrain_16gpu_h100_bf16 | qwen3_32b_pretrain | Qwen/Qwen3-32B | tp=8 pp=2 seq=4096 mbs=2 gbs=32 overlap cef full uniform=1
qwen3_600m_sft_1gpu_h100_bf16 | qwen3_600m_sft | Qwen/Qwen3-0.6B | seq=2048 mbs=1 gbs=8 cef
qwen3_600m_sft_8gpu_h100_bf16_128k | qwen3_600m_sft_128k | Qwen/Qwen3-0.6B | cp=8 seq=131072 mbs=1 gbs=2 replicated cp_comm=a2a
qwen3_600m_sft_8gpu_h100_bf16_yarn_128k | qwen3_600m_sft_yarn_128k | Qwen/Qwen3-0.6B | cp=8 seq=131072 mbs=1 gbs=8 replicated
qwen3_1p7b_sft_1gpu_h100_bf16 | qwen3_1p7b_sft | Qwen/Qwen3-1.7B | seq=2048 mbs=1 gbs=8 cef
qwen3_4b_sft_2gpu_h100_bf16 | qwen3_4b_sft | Qwen/Qwen3-4B | tp=2 seq=2048 mbs=1 gbs=8 cef
qwen3_8b_sft_4gpu_h100_bf16 | qwen3_8b_sft | Qwen/Qwen3-8B | tp=4 seq=2048 mbs=1 gbs=32 cef
qwen3_8b_sft_8gpu_h100_bf16_32k | qwen3_8b_sft_32k | Qwen/Qwen3-8B | tp=4 cp=2 sp seq=32768 mbs=1 gbs=8 cp_comm=a2a
qwen3_14b_sft_8gpu_h100_bf16 | qwen3_14b_sft | Qwen/Qwen3-14B | tp=8 seq=2048 mbs=1 gbs=8 cef
qwen3_32b_sft_16gpu_h100_bf16 | qwen3_32b_sft | Qwen/Qwen3-32B | tp=8 pp=2 seq=2048 mbs=1 gbs=8 cef full uniform=1
qwen3_600m_peft_1gpu_h100_bf16 | qwen3_600m_peft | Qwen/Qwen3-0.6B | seq=2048 mbs=1 gbs=8 cef
qwen3_1p7b_peft_1gpu_h100_bf16 | qwen3_1p7b_peft | Qwen/Qwen3-1.7B | seq=2048 mbs=1 gbs=8 cef
qwen3_4b_peft_1gpu_h100_bf16 | qwen3_4b_peft | Qwen/Qwen3-4B | seq=2048 mbs=1 gbs=8 cef
qwen3_8b_peft_1gpu_h100_bf16 | qwen3_8b_peft | Qwen/Qwen3-8B | seq=2048 mbs=1 gbs=32 cef
qwen3_14b_peft_1gpu_h100_bf16 | qwen3_14b_peft | Qwen/Qwen3-14B | seq=2048 mbs=1 gbs=8 cef
qwen3_32b_peft_1gpu_h100_bf16 | qwen3_32b_peft | Qwen/Qwen3-32B | seq=2048 mbs=1 gbs=8 cef full uniform=1
qwen3_30b_a3b_pretrain_8gpu_h100_bf16 | - | Qwen/Qwen3-30B-A3B | tp=4 pp=2 ep=4 etp=1 sp seq=4096 mbs=2 gbs=32 overlap cef full uniform=1
qwen3_30b_a3b_pretrain_16gpu_h100_bf16 | qwen3_30b_a3b_pretrain | Qwen/Qwen3-30B-A3B | ep=16 seq=4096 mbs=1 gbs=1024 overlap cef grads=bf16 aware=fp32,fp32,fp32,fp32 flex graphs=transformer_engine
qwen3_235b_a22b_pretrain_256gpu_h100_bf16 | qwen3_235b_a22b_pretrain | Qwen/Qwen3-235B-A22B | tp=4 pp=16 cp=2 ep=8 etp=1 sp seq=4096 mbs=1 gbs=32 overlap cef ends
qwen3_30b_a3b_sft_8gpu_h100_bf16 | - | Qwen/Qwen3-30B-A3B | tp=4 pp=2 ep=4 etp=1 sp seq=2048 mbs=1 gbs=32 overlap cef
qwen3_30b_a3b_sft_16gpu_h100_bf16 | qwen3_30b_a3b_sft | Qwen/Qwen3-30B-A3B | ep=16 seq=2048 mbs=1 gbs=32 overlap cef
qwen3_235b_a22b_sft_64gpu_h100_bf16 | qwen3_235b_a22b_sft | Qwen/Qwen3-235B-A22B | tp=4 pp=16 ep=4 etp=1 sp seq=2048 mbs=1 gbs=32 overlap cef ends
qwen3_30b_a3b_peft_4gpu_h100_bf16 | qwen3_30b_a3b_peft | Qwen/Qwen3-30B-A3B | tp=4 ep=4 etp=1 sp seq=2048 mbs=1 gbs=32 overlap cef
qwen3_235b_a22b_peft_16gpu_h100_bf16 | qwen3_235b_a22b_peft | Qwen/Qwen3-235B-A22B | tp=4 pp=4 ep=4 etp=1 sp seq=2048 mbs=1 gbs=32 overlap cef ends
"""  # noqa: E501 - a row is a line


@dataclass(frozen=True, slots=True)
class Recipe:
    """`settings`: by token, "" for a bare one."""

    name: str
    model: str
    settings: dict[str, str]

    @property
    def task(self) -> str:
        """pretrain, sft or peft."""
        return next((task for task in ("pretrain", "sft", "peft") if f"_{task}" in self.name), "")


def _parse(text: str) -> dict[str, Recipe]:
    found: dict[str, Recipe] = {}
    for line in text.strip().splitlines():
        name, short, model, tokens = (cell.strip() for cell in line.split(" | "))
        recipe = Recipe(name, model, {token.partition("=")[0]: token.partition("=")[2] for token in tokens.split()})
        found[name] = recipe
        if short != "-":
            found[short] = recipe
    return found


_BY_NAME = _parse(RECIPES)


def recipe_of(name: str) -> Recipe | None:
    """The recipe of a name, with or without `_config`, the number of GPUs and the format; None for one that is not here."""
    return _BY_NAME.get(name.strip().lower().removesuffix("_config"))
