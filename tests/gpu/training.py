"""Trains one case on the first GPU and prints its peaks as JSON: `python -m tests.gpu.training CASE [SECONDS]`.

A process of its own for each case: library workspaces stay for the life of a process, and NVML counts by process.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

import pynvml
import torch
import transformers
from tests.gpu.cases import CASES, RECIPES, Case

STEPS = 4
OPTIMIZERS = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def process_bytes() -> int:
    """What NVML shows for this process on the first GPU; 0 when the driver does not say."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    return int(sum(process.usedGpuMemory or 0 for process in processes if process.pid == os.getpid()))


def context_bytes() -> int:
    """Device memory of a process that has done one small matrix product: NVML's figure less torch's reserved memory."""
    small = torch.ones(64, 64, device="cuda")
    (small @ small).sum().item()
    return process_bytes() - int(torch.cuda.memory_reserved())


def model_of(case: Case) -> torch.nn.Module:
    """The case's model on the GPU with random weights; nothing is downloaded."""
    config = transformers.AutoConfig.for_model(**case.config)
    dtype = getattr(torch, RECIPES[case.recipe])
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=case.attention).cuda().train()
    if case.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def train(case: Case, seconds: float) -> dict[str, object]:
    """Takes a few steps, then goes on for so many seconds; the peaks are those of whole steps after the first two."""
    context, model = context_bytes(), model_of(case)
    implementation = {"foreach": {"foreach": True}, "fused": {"fused": True}}[case.implementation]
    optimizer = OPTIMIZERS[case.optimizer](model.parameters(), lr=1e-4, **implementation)
    tokens = torch.randint(int(str(case.config["vocab_size"])), (case.micro_batch_size, case.sequence_length), device="cuda")
    autocast = torch.autocast("cuda", torch.bfloat16) if case.recipe.startswith("amp") else contextlib.nullcontext()
    end = time.monotonic() + seconds
    step = 0
    while step < STEPS or time.monotonic() < end:
        if step == STEPS - 2:
            torch.cuda.reset_peak_memory_stats()
        for _ in range(case.gradient_accumulation_steps):
            with autocast:
                outputs = model(input_ids=tokens, labels=tokens)
            outputs.loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
    torch.cuda.synchronize()
    peaks = {"allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved()}
    return peaks | {"device_bytes": process_bytes(), "context_bytes": context}


if __name__ == "__main__":
    chosen = next(case for case in CASES if case.name == sys.argv[1])
    print(json.dumps(train(chosen, float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)))
