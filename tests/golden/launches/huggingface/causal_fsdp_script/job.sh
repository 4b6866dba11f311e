#!/bin/bash
MODEL=mistralai/Mistral-7B-v0.1
SEQ=2048
BS=2
ACC=4
torchrun --nnodes 1 --nproc_per_node 8 examples/pytorch/language-modeling/run_clm.py \
    --model_name_or_path $MODEL \
    --dataset_name wikitext --dataset_config_name wikitext-103-raw-v1 \
    --per_device_train_batch_size ${BS} --per_device_eval_batch_size 1 \
    --gradient_accumulation_steps $ACC \
    --block_size $SEQ \
    --do_train --do_eval \
    --bf16 True --torch_dtype bfloat16 \
    --gradient_checkpointing True \
    --fsdp "full_shard auto_wrap" --fsdp_config fsdp.json \
    --optim adamw_torch_fused \
    --output_dir out
