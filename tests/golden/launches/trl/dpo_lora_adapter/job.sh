#!/usr/bin/env bash
set -e
export MODEL="Qwen/Qwen2-0.5B-Instruct"
ARGS="--use_peft --lora_r 32 --lora_alpha 16 --lora_dropout 0.0"
python dpo.py \
  --dataset_name trl-lib/ultrafeedback_binarized \
  --model_name_or_path "$MODEL" \
  --learning_rate 5.0e-6 \
  --per_device_train_batch_size 2 \
  --gradient_accumulation_steps 8 \
  --gradient_checkpointing \
  --optim adamw_torch_fused \
  $ARGS
