#!/bin/bash
export NPROC_PER_NODE=8
megatron sft --save_steps 100 --config sft.yaml
