"""What a source says and its row's document does not: versions, a number of micro-batches, a flag.

The documents of `tests/golden/published_jobs.jsonl` stay as they are, and every figure of the page counts them so; this table shows what
becomes of a row once the submitter says what the source said.
"""

from __future__ import annotations

from dataclasses import dataclass

Value = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Rows by the beginning of their ids, the fields that the source adds, and where it says so."""

    ids: tuple[str, ...]
    adds: dict[str, Value]
    where: str


LITGPT = "config_hub is part of the package, which pins bitsandbytes 0.42: a 4-bit product keeps its input, and `logits` the graph"
YAML = "the yaml's global_batch_size over devices and micro-batch: under no_sync FSDP adds up whole gradients"
UNFUSED = "model_config.yaml: --no-gradient-accumulation-fusion"

SAID = (
    Said(
        ids=("hf-bertL-v100-",),
        adds={"framework.torch": "1.10", "framework.version": "4.15", "framework.cuda": "11.2"},
        where="the page prints 11 January 2022 and CUDA 11.2: gradients that stay, a softmax that keeps its input, every kernel loaded",
    ),
    Said(
        ids=("litgpt-hub-llama-2-7b-qlora-1xA10G", "litgpt-hub-stablelm-base-alpha-3b-qlora-1xA10G"),
        adds={"framework.version": "0.3.0"},
        where=LITGPT,
    ),
    Said(
        ids=("litgpt-hub-stablelm-base-alpha-3b-full-4xA10G",),
        adds={"framework.version": "0.3.0", "batch.gradient_accumulation_steps": 4},
        where=YAML,
    ),
    Said(
        ids=("mcore-te_tp1_pp1_dist_optimizer_no_mmap_bin_files-", "mcore-te_tp1_pp4_vp1-"),
        adds={"framework.megatron.gradient_accumulation_fusion": False},
        where=UNFUSED,
    ),
    Said(
        ids=("mbridge-moonlight-",),
        adds={
            "precision.gradients": "bfloat16",
            "precision.optimizer_states": "bfloat16",
            "framework.megatron.cross_entropy_fusion": True,
        },
        where="recipes/moonlight/h100/moonlight_16b.py, 8 GPUs: main_grads_dtype and moments bfloat16, cross_entropy_loss_fusion",
    ),
    Said(
        ids=("tune-31-8b-full-4090",),
        adds={"framework.version": "0.3.0"},
        where="a table of September 2024, when the recipes' configs name the chunked loss",
    ),
)
