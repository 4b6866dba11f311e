"""What a kernel profile says: whose kernels run, as renamed roles. Data, no branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakgate.memory.pipeline import Stage
    from peakgate.memory.plan import Plan
    from peakgate.memory.prediction import LedgerLine
    from peakgate.memory.states import Weight


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
    roles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By block: roles of a framework's own modules, which win over the family's."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Operations that change the number of rows, and the dimension that says to how many."""
    recomputed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Modules of selective checkpointing, and the roles that are then segments of their own."""
    segments: tuple[str, ...] = ()
    """Blocks that those roles may name."""
    linears: Mapping[str, str] = field(default_factory=dict)
    """Kernels of linear layers whose weight gradients are added up inside the product (`plan.fused_weight_gradients`)."""
    resident: Callable[[Plan, Stage, list[Weight]], list[LedgerLine]] | None = None
    """What else lives all step long: workspaces, tables, buffers."""
    pipeline_loop: bool = False
    """The locals of Megatron-LM's pipeline loop are counted, and outputs are deallocated once they are sent."""
    zero_buckets: bool = True
    """Sharded gradients and parameters go through DeepSpeed's buckets."""
    flat_buffers: bool = False
    """Weights and gradients are moved into one buffer each after the model is built."""
    vocabulary_multiple: int = 0
    """The vocabulary is padded to a multiple of this and of the tensor parallel degree; 0 as it is."""
    final_norm_suffix: str = ""
    """What distinguishes the norm after the last layer, where its kernel is another one."""
