"""What a kernel profile says: whose kernels run, as renamed roles. Data, no branches."""

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
