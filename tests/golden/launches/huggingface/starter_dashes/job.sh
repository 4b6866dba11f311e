#!/bin/bash
SHARED=${1:-2}
uv run python submit.py \
    --cluster one \
    --gpus 8 -- source nodes.sh \&\&accelerate launch \
    --mixed_precision bf16 \
    --num_processes 8 \
    --use_deepspeed \
    --deepspeed_config_file ds.json \
    finetune.py \
    --model_name_or_path Qwen/Qwen2.5-7B \
    --max_seq_length 4096 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 8 \
    --num_train_epochs 2 \
    --sequence_parallel_size $SHARED \
    --output_dir out
