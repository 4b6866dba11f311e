#!/bin/bash
#SBATCH --job-name=qwen3-lora
MODEL_NAME=qwen3_8b
SEQ_LENGTH=4096
TP=2
PP=1
CLI_OVERRIDES="checkpoint.pretrained_checkpoint=/models/${MODEL_NAME} \
    train.train_iters=1000 \
    train.global_batch_size=16 \
    train.micro_batch_size=1 \
    model.tensor_model_parallel_size=$TP \
    model.pipeline_model_parallel_size=$PP \
    dataset.seq_length=$SEQ_LENGTH \
    model.seq_length=$SEQ_LENGTH \
    peft.dim=16 peft.dropout=0.1 peft.target_modules=[linear_qkv,linear_proj]"
uv run python -m torch.distributed.run --nproc_per_node=8 scripts/training/run_recipe.py --recipe ${MODEL_NAME}_peft_config $CLI_OVERRIDES
