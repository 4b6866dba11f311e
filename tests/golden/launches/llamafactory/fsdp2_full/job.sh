#!/bin/bash
export NUM_GPUS=4
accelerate launch \
    --config_file fsdp2.yaml \
    --num_processes ${NUM_GPUS} \
    src/train.py full.yaml
