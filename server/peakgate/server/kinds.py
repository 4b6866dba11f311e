"""What a job is counted as: the model of its GPU and the family of its framework, both from closed lists."""

from __future__ import annotations

import re
from collections.abc import Mapping

from peakgate.memory.catalog.gpus import GPUS
from peakgate.v1.metric import OTHER

WORKSTATION = "rtx"
"""Cards of desktops and workstations count as one model."""

FAMILIES: Mapping[str, str] = {
    "huggingface": "huggingface",
    "deepspeed": "deepspeed",
    "megatron": "megatron",
    "torch": "pytorch",
    "torchtitan": "pytorch",
    "torchtune": "pytorch",
    "litgpt": "pytorch",
    "composer": "pytorch",
}
"""Framework -> family: those whose step is PyTorch's own are one. What is absent is `other`."""

FRAMEWORKS = (*dict.fromkeys(FAMILIES.values()), OTHER)


def gpu_model(name: str) -> str:
    """`h100-80gb` and its slices are an h100; a card that the catalogue does not have is `other`."""
    card = name.partition("/")[0]
    if card not in GPUS:
        return OTHER
    return WORKSTATION if card.startswith((WORKSTATION, "titan")) else re.sub(r"-\d+gb$", "", card)


GPU_MODELS = (*sorted({gpu_model(name) for name in GPUS}), OTHER)


def kind_of(group: str) -> tuple[str, str]:
    """(GPU model, framework family) of a calibration's group: `h100-80gb/huggingface-4.55/fsdp/one node`."""
    gpu, *parts = group.split("/")
    names = (part.partition("-")[0] for part in parts)
    return gpu_model(gpu), next((FAMILIES[name] for name in names if name in FAMILIES), OTHER)
