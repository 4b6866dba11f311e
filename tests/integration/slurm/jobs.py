"""Scripts whose need is known: one GPT of a given depth and micro-batch. What they start is not installed where they look for it."""

from __future__ import annotations

TRAINING = """#!/bin/bash
PATH=/usr/bin:/bin
torchrun --nproc_per_node=$SLURM_GPUS_ON_NODE --nnodes=$SLURM_NNODES pretrain_gpt.py --num-layers {layers} --hidden-size 4096 \\
  --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size {sequences} --global-batch-size 1024 \\
  --vocab-size 50257 --bf16
"""
FITS = TRAINING.format(layers=4, sequences=1)
"""In 40 GB."""
TOO_LARGE = TRAINING.format(layers=40, sequences=8)
"""For 80 GB."""
BETWEEN = TRAINING.format(layers=4, sequences=6)
"""In 80 GB, and not in 40."""
NO_TRAINING = "#!/bin/bash\nhostname\n"
