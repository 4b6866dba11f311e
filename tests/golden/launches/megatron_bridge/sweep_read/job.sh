#!/bin/bash
MODEL=qwen3_8b
BATCH=64
COMBINATIONS=("2,2,1" "4,1,2")
for one in "${COMBINATIONS[@]}"; do
    IFS=',' read -r TP PP CP <<< "$one"
    uv run python -m torch.distributed.run --nproc_per_node=8 scripts/training/run_recipe.py \
        --recipe ${MODEL}_sft_config \
        --step_func gpt_step \
        train.global_batch_size=$BATCH \
        train.micro_batch_size=1 \
        dataset.seq_length=4096 \
        model.tensor_model_parallel_size=$TP \
        model.pipeline_model_parallel_size=$PP \
        model.context_parallel_size=$CP
done
