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
    blocks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Blocks that the framework has in a form of its own, with the roles that are that block's alone; empty: none is left out."""
    compiled: Mapping[str, str] = field(default_factory=dict)
    """What torch.compile makes of a layer's roles, after `renames`; embedding, last norm and head are not compiled."""
    losses: Mapping[str, str] = field(default_factory=dict)
    """The framework's own way (`loss.LOSSES`) of a `loss.implementation`."""
    masks_padding: bool = True
    """Whether a padded batch hands the attention a mask; causal attention with ignored labels needs none."""
    quantised: str = "linear_quantised"
    """The kernel of a product with a 4-bit weight …"""
    whole: frozenset[str] = frozenset({"head", "router"})
    """… and the linear layers that stay whole."""
    adapts_parts: bool = False
    """Whether queries, keys and values are one matrix whose parts are adapted one by one."""
    optimizers_of_4bit: Mapping[str, str] = field(default_factory=dict)
    """What the framework makes of an optimizer where the base is quantised."""
    double_quant: bool = False
    """Whether the scales of a 4-bit weight are always quantised too."""
    holds_graph: bool = False
    """Whether the loop's `logits` hold a micro-batch's graph until the next forward pass has returned."""
    longest_first: bool = False
    """Whether the longest batch is the first: its passes meet neither optimizer states nor an earlier graph."""
    final_norm_suffix: str = ""
    """What distinguishes the norm after the last layer, where its kernel is another one."""
