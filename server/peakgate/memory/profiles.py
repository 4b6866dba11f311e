"""Kernel profiles: whose kernels run, as renamed roles. Data, no branches.

A profile that has no row of its own yet stands on `huggingface`, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`renames` win over a family's roles; `ignored` categories are not counted; `rounds`: allocations are blocks."""

    renames: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    rounds: bool = True
    workspaces: int = 2
    """Library workspaces inside the allocator: one per thread that runs products (forward and autograd)."""
    context: bool = True
    """Whether a CUDA context and communication buffers are counted."""
    tables: bool = True
    """Whether position ids, rotary tables, masks and the input batch are counted."""
    copies_rebuilt_input: bool = False
    """Seed A counts a checkpoint and the input of the layer rebuilt from it: M(k) = (L/k)c + kA."""
    optimizer_temporaries: bool = True
    final_norm_suffix: str = ""
    """What distinguishes the norm after the last layer, where its kernel is another one."""


TEXTBOOK_RENAMES = {
    "layer_norm": "layer_norm_textbook",
    "rms_norm": "rms_norm_textbook",
    "rms_norm_gemma": "rms_norm_textbook",
    "rms_norm_olmo": "rms_norm_textbook",
    "attention_gpt2": "attention_textbook",
    "head_linear": "head_textbook",
    "causal_loss": "loss_textbook",
    "core_eager": "core_textbook",
    "core_flash": "core_flash_textbook",
    "gelu_new": "gelu",
    "softmax_fp32": "softmax",
    "rope": "pass",
    "repeat": "view",
    "heads": "view",
    "heads_free": "view",
}

FUSED_KERNELS: dict[str, dict[str, str]] = {
    "rms_norm": {"rms_norm": "rms_norm_fused", "rms_norm_gemma": "rms_norm_fused"},
    "swiglu": {"mlp_gated": "mlp_gated_fused"},
    "gelu": {"gelu_new": "gelu"},
}
"""`framework.fused_kernels`: what each replaces.

Liger ops/rms_norm.py keeps the input and one number a row; ops/swiglu.py keeps gate and up.
"""

PROFILES: dict[str, Profile] = {
    "huggingface": Profile(),
    "textbook": Profile(
        renames=TEXTBOOK_RENAMES,
        ignored=frozenset({"temporaries", "communication"}),
        rounds=False,
        workspaces=0,
        context=False,
        tables=False,
        copies_rebuilt_input=True,
        optimizer_temporaries=False,
        final_norm_suffix="_final",
    ),
}


def profile_of(framework: str) -> Profile:
    """The framework's row, or that of huggingface."""
    return PROFILES.get(framework, PROFILES["huggingface"])
