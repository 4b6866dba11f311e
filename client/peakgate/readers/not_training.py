"""Programs that stand beside a training in scripts and take the same flags: what prepares, converts, evaluates or serves."""

from __future__ import annotations

import re

OTHER = frozenset(
    {
        "preprocess",
        "preprocessing",
        "prepare",
        "tokenize",
        "tokenization",
        "convert",
        "conversion",
        "eval",
        "evaluate",
        "evaluation",
        "generate",
        "generation",
        "inference",
        "infer",
        "predict",
        "merge",
        "download",
        "upload",
        "push",
        "serve",
        "server",
        "serving",
        "export",
        "analyze",
        "analyse",
        "chat",
        "demo",
        "gradio",
        "quantize",
        "benchmark",
        "bench",
        "test",
    }
)
TRAINING = re.compile(r"train|finetun|fine_tun|sft|dpo|grpo|pretrain|lora")


def trains(program: str) -> bool:
    """Whether the program's name leaves open that it trains."""
    name = program.lower().removesuffix(".py")
    return bool(TRAINING.search(name)) or not OTHER.intersection(re.split(r"[^a-z0-9]+", name))
