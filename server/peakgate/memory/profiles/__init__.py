"""Kernel profiles by framework: one file each, with the blocks that only that framework has.

A framework without a row stands on `huggingface`, and the answer says so.
"""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.memory.kernels import Kernel
from peakgate.memory.profiles import composer, liger, litgpt, megatron, textbook, torch, torchtitan, torchtune
from peakgate.memory.profiles.profile import Profile

HUGGINGFACE = Profile(transformers=True, adds_up_whole=True, recomputed={"core_attn": ("core",), "mlp": ("mlp",)})

PROFILES: dict[str, Profile] = {
    "huggingface": HUGGINGFACE,
    "textbook": textbook.PROFILE,
    "megatron": megatron.PROFILE,
    "litgpt": litgpt.PROFILE,
    "torchtune": torchtune.PROFILE,
    "torch": torch.PROFILE,
    "torchtitan": torchtitan.OLDEST,
    "composer": composer.PROFILE,
    "deepspeed": HUGGINGFACE,  # deepspeed.initialize wraps the module that it is given; what is its own is `zero.py`
    "colossalai": replace(HUGGINGFACE, low_level_zero=True),  # booster/plugin/low_level_zero_plugin.py: so too
}

EARLIER: dict[str, Profile] = {"lit-gpt": litgpt.SCRIPTS}
"""Rows of a framework's earlier versions (`profile_name`)."""

AGES: dict[str, Profile] = {"torchtitan 0.1": torchtitan.FIRST, "torchtitan 0.2": torchtitan.SECOND, "torchtitan 0.2.1": torchtitan.THIRD}
"""Rows of later versions, by the one from which they hold; without a stated version the framework's first row does."""

BLOCKS = textbook.BLOCKS | liger.BLOCKS | megatron.BLOCKS | litgpt.BLOCKS | torchtune.BLOCKS | torchtitan.BLOCKS | composer.BLOCKS

KERNELS: dict[str, Kernel] = {
    **liger.KERNELS,
    **megatron.KERNELS,
    **litgpt.KERNELS,
    **torchtune.KERNELS,
    **torchtitan.KERNELS,
    **composer.KERNELS,
}
"""Kernels that only one framework has, or that a library puts into a model."""


def profile_of(framework: str) -> Profile:
    """The framework's row, or that of huggingface."""
    return PROFILES.get(framework) or EARLIER.get(framework) or AGES.get(framework) or PROFILES["huggingface"]


def profile_name(framework: str, version: str | None, block: str = "", capability: tuple[int, int] | None = None) -> str:
    """The name of the framework's row at a version: the latest that has begun; without one the first that models the block on the card.

    LitGPT has versions since it is a package; without one it is the scripts before it, if they knew the model's block.
    """
    if framework == "litgpt" and not version and (not block or block in EARLIER["lit-gpt"].blocks):
        return "lit-gpt"
    if not version and block:
        ages = [framework, *(name for name in AGES if name.partition(" ")[0] == framework)]
        major = capability[0] if capability else 0
        fitting = (name for name in ages if name in PROFILES | AGES and major <= profile_of(name).newest_capability)
        return next((name for name in fitting if profile_of(name).models(block)), framework_row(framework))
    begun = [name for name in AGES if name.partition(" ")[0] == framework and _numbers(name.partition(" ")[2]) <= _numbers(version)]
    return max(begun, key=_numbers, default=framework_row(framework))


def framework_row(framework: str) -> str:
    """The framework's first row, or that of huggingface."""
    return framework if framework in PROFILES else "huggingface"


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version or ""))
