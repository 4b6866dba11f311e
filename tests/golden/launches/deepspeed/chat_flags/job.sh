#!/bin/bash
OUTPUT=${1:-./output}
ZERO_STAGE=3
mkdir -p $OUTPUT
deepspeed --num_gpus 8 main.py \
   --data_path Dahoas/rm-static \
   --model_name_or_path facebook/opt-6.7b \
   --per_device_train_batch_size 6 \
   --per_device_eval_batch_size 6 \
   --max_seq_len 512 \
   --learning_rate 9.65e-6 \
   --num_train_epochs 16 \
   --gradient_accumulation_steps 1 \
   --gradient_checkpointing \
   --dtype bf16 \
   --zero_stage $ZERO_STAGE \
   --offload \
   --lora_dim 128 \
   --deepspeed \
   --output_dir $OUTPUT
