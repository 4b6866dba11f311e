"""Kernel profiles by framework: one file each, with the blocks that only that framework has.

A framework without a row stands on `huggingface`, and the answer says so.
"""

from __future__ import annotations

from peakgate.memory.kernels import Kernel
from peakgate.memory.profiles import megatron, textbook
from peakgate.memory.profiles.profile import Profile

PROFILES: dict[str, Profile] = {"huggingface": Profile(), "textbook": textbook.PROFILE, "megatron": megatron.PROFILE}

BLOCKS = textbook.BLOCKS | megatron.BLOCKS

KERNELS: dict[str, Kernel] = {**megatron.KERNELS}
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
    return PROFILES.get(framework, PROFILES["huggingface"])
