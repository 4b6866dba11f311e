#!/bin/bash
MODEL=llama3_3/70B_full_multinode
SEQ=4096
tune run --nnodes 2 --nproc_per_node 8 full_finetune_distributed \
  --config ${MODEL} \
  tokenizer.max_seq_len=${SEQ} \
  batch_size=2 \
  ~custom_sharded_layers \
  fsdp_cpu_offload=True optimizer.fused=False
