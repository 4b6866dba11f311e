"""Kernel profiles by framework: one file each, with the blocks that only that framework has.

A framework without a row stands on `huggingface`, and the answer says so.
"""

from __future__ import annotations

from peakgate.memory.kernels import Kernel
from peakgate.memory.profiles import litgpt, megatron, textbook, torch, torchtune
from peakgate.memory.profiles.profile import Profile

PROFILES: dict[str, Profile] = {
    "huggingface": Profile(),
    "textbook": textbook.PROFILE,
    "megatron": megatron.PROFILE,
    "litgpt": litgpt.PROFILE,
    "torchtune": torchtune.PROFILE,
    "torch": torch.PROFILE,
}

EARLIER: dict[str, Profile] = {"lit-gpt": litgpt.SCRIPTS}
"""Rows of a framework's earlier versions (`profile_name`)."""

BLOCKS = textbook.BLOCKS | megatron.BLOCKS | litgpt.BLOCKS | torchtune.BLOCKS

KERNELS: dict[str, Kernel] = {**megatron.KERNELS, **litgpt.KERNELS, **torchtune.KERNELS}
"""Kernels that only one framework has."""

FUSED_KERNELS: dict[str, dict[str, str]] = {
    "rms_norm": {"rms_norm": "rms_norm_fused", "rms_norm_gemma": "rms_norm_fused"},
    "swiglu": {"mlp_gated": "mlp_gated_fused"},
    "gelu": {"gelu_new": "gelu"},
}
"""`framework.fused_kernels`: what each replaces.

Liger ops/rms_norm.py keeps the input and one number a row; ops/swiglu.py keeps gate and up.
"""


def profile_of(framework: str) -> Profile:
    """The framework's row, or that of huggingface."""
    return PROFILES.get(framework) or EARLIER.get(framework, PROFILES["huggingface"])


def profile_name(framework: str, version: str | None) -> str:
    """The name of the framework's row at a version. LitGPT has versions since it is a package; without one it is the scripts before it."""
    if framework == "litgpt" and not version:
        return "lit-gpt"
    return framework if framework in PROFILES else "huggingface"
