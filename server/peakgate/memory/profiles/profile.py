"""What a kernel profile says: whose kernels run, as renamed roles. Data, no branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakgate.memory.architecture import Architecture
    from peakgate.memory.pipeline import Stage
    from peakgate.memory.plan import Plan
    from peakgate.memory.prediction import LedgerLine
    from peakgate.memory.weights import Weight


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
    built: Mapping[str, Callable[[Architecture], Architecture]] = field(default_factory=dict)
    """By block: what the framework builds of the published model, where that is another one."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Operations that change the number of rows, and the dimension that says to how many."""
    recomputed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Modules of selective checkpointing, and the roles that are then segments of their own."""
    linears: Mapping[str, str] = field(default_factory=dict)
    """Kernels of linear layers whose weight gradients are added up inside the product (`plan.fused_weight_gradients`)."""
    linears_of: Callable[[Plan, Mapping[str, str]], Mapping[str, str]] | None = None
    """What a plan makes of `linears`: products in 8 bits have kernels of their own."""
    resident: Callable[[Plan, Stage, list[Weight]], list[LedgerLine]] | None = None
    """What else lives all step long: workspaces, tables, buffers."""
    splits_backward: bool = False
    """The framework has a zero-bubble schedule, and it is counted (`zero_bubble.py`)."""
    gathers_inputs: bool = False
    """Blocks gather and scatter the tokens of sequence parallel ranks themselves, and the gathered input is what is kept."""
    further_tokens: frozenset[str] = frozenset()
    """Embeddings with which the framework predicts further tokens (`multi_token.py`); empty: its modules predict one."""
    pipeline_loop: bool = False
    """The locals of Megatron-LM's pipeline loop are counted, and outputs are deallocated once they are sent."""
    adds_up_whole: bool = False
    """Micro-batches before the last of a step run under no_sync: FSDP then adds up whole gradients."""
    zero_buckets: bool = True
    """Sharded gradients and parameters go through DeepSpeed's buckets."""
    low_level_zero: bool = False
    """They go through ColossalAI's buckets (`low_level_zero.py`)."""
    flat_buffers: bool = False
    """Weights and gradients are moved into one buffer each after the model is built."""
    vocabulary_multiple: int = 0
    """The vocabulary is padded to a multiple of this and of the tensor parallel degree; 0 as it is."""
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
    per_operation: bool = False
    """Selective checkpointing keeps the outputs of a list of operations of each layer (`selective.py`)."""
    compiled_layers: Mapping[str, str] = field(default_factory=dict)
    """Kernels of a whole compiled layer, by block and checkpointing mode; one without is not counted."""
    resident_rope: bool = False
    """The rotary table is a buffer of the model, not made in every forward pass."""
    compiled_loss: Mapping[str, str] = field(default_factory=dict)
    """Roles of a loss that is compiled with the layers …"""
    compiles_loss_of: frozenset[str] = frozenset()
    """… and blocks whose own configuration compiles the loss alone."""
    splits_ends: bool = False
    """The embedding is a unit of FSDP2 of its own, and so is the last norm with the head."""
    keeps_last_unit: bool = False
    """The last layer stays gathered between forward and backward."""

    transformers: bool = False
    """Whether it trains Hugging Face's own modules, which a library of kernels may patch …"""
    fused: frozenset[str] = frozenset()
    """… and which kernels its own modules are fused with anyway."""

    newest_capability: int = 1 << 10
    """The last major compute capability on which this age of the framework runs."""

    def compiles_loss(self, plan: Plan) -> bool:
        """Whether the plan's loss is one compiled graph."""
        return bool(self.compiled_loss) and (plan.compiled or plan.architecture.block in self.compiles_loss_of)

    def compiles_layers(self, plan: Plan) -> bool:
        """Whether the plan's layers are compiled and counted."""
        return plan.compiled and f"{plan.architecture.block}/{plan.checkpointing}" in self.compiled_layers

    def models(self, block: str) -> bool:
        """Whether the framework builds the block of its own modules, or has none of its own."""
        return not self.roles or block in self.roles

    def builds(self, published: Architecture) -> Architecture:
        """The architecture as the framework builds it."""
        own = self.built.get(published.block)
        return own(published) if own else published
