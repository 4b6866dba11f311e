#!/bin/bash
OUTPUT=$1
STAGE=$2
if [ "$OUTPUT" == "" ]; then
    OUTPUT=./output
fi
if [ "$STAGE" == "" ]; then
    STAGE=2
fi
LEN=${3:-1024}
deepspeed --num_gpus 4 main.py \
    --model_name_or_path facebook/opt-6.7b \
    --per_device_train_batch_size 8 \
    --max_seq_len $LEN \
    --gradient_accumulation_steps 2 \
    --gradient_checkpointing \
    --dtype bf16 \
    --offload \
    --zero_stage $STAGE \
    --deepspeed \
    --output_dir $OUTPUT
