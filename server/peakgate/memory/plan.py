"""A job with every field decided: what the walk of one rank needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.architecture import Architecture
from peakgate.memory.frozen import NOTHING, Frozen

ZERO, FSDP = ("zero1", "zero2", "zero3"), ("fsdp", "hsdp")
SHARDED = (*ZERO, *FSDP)
"""Kinds of data parallelism (`Degrees.sharding`) whose ranks hold shards."""

FSDP2 = 2
"""The version of FSDP that gathers each weight on its own (torch.distributed.fsdp.fully_shard)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Number formats by name (`dtypes.ITEMSIZE`); `autocast`: fp32 weights, products of 16-bit copies."""

    parameters: str
    gradients: str
    master_weights: str
    optimizer_states: str
    compute: str
    autocast: bool
    resident_gradients: bool
    """Gradients have buffers of their own that live all step long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraPlan:
    """Adapters on a frozen base; `targets` are the linear layers' short names (q k v o gate up down qkv)."""

    rank: int
    targets: frozenset[str]
    dropout: float
    base_dtype: str
    double_quant: bool
    adapter_dtype: str
    dora: bool = False
    """Each output is scaled by a learned magnitude (`dora.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """Degrees of parallelism. `data` includes context parallel ranks for sharding only through `shard`."""

    world: int = 1
    data: int = 1
    shard: int = 1
    sharding: str = "none"
    tensor: int = 1
    sequence_parallel: bool = False
    pipeline: int = 1
    virtual_pipeline: int = 1
    schedule: str = "1f1b"
    stage_layers: tuple[int, ...] = ()
    context: int = 1
    context_type: str = "all-gather"
    expert: int = 1
    imbalance_permille: int = 1000
    """Rows of the fullest rank's experts, in thousandths of those of balanced routing."""
    expert_shard: int = 0
    """Ranks over which the states of experts are divided; 0: `shard`, as all else."""
    whole_experts: bool = False
    """Experts are not split by tensor parallelism, whose ranks they take as expert parallel ones (torchtitan: etp = 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """Another resident model of a training method, with the plan of its own pass; `trained`: it has gradients and states as the policy has.

    `shares_weights`: it is the policy itself without its adapters; `caches`: it keeps the keys and values of all layers while it runs.
    """

    role: str
    plan: Plan
    trained: bool = False
    shares_weights: bool = False
    caches: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One rank's step. Lengths in tokens; `micro_batch` in sequences."""

    architecture: Architecture
    micro_batch: int
    sequence: int
    target: int = 0
    """Tokens of the decoder of two stacks; `sequence` is then the encoder's."""
    image: int = 0
    patch: int = 0
    accumulation: int = 1
    profile: str = "huggingface"
    attention: str = "sdpa"
    builds_mask: bool = False
    """The library builds a mask although none is passed (transformers 4.53 to 4.57), or a padding mask is passed."""
    repeats_heads: bool = False
    """The library copies keys and values to all heads even without a mask (transformers before 4.54)."""
    dropout_attention: float = 0.0
    dropout_hidden: float = 0.0
    checkpointing: str = "none"
    checkpoint_every: int = 1
    checkpoint_layers: int = 0
    reentrant: bool = False
    formats: Formats
    optimizer: str = "adamw"
    implementation: str = "foreach"
    set_to_none: bool = True
    in_backward: bool = False
    loss: str = "full"
    keep_logits: bool = True
    further_graphs_permille: int = 0
    """Saved activations of the graphs that a loss with create_graph=True keeps beside the first, in thousandths of the first's."""
    lora: LoraPlan | None = None
    degrees: Degrees = Degrees()
    framework: str = "huggingface"
    fused_kernels: frozenset[str] = frozenset()
    compiled: bool = False
    """torch.compile, as far as the profile says what it makes of a layer."""
    earlier_kernels: tuple[tuple[str, str], ...] = ()
    """Kernels of the stated versions that stand in the place of today's (`earlier.py`)."""
    cuda_graphs: str = "none"
    pins_inputs: bool = False
    """bitsandbytes keeps the input of a 4-bit product as long as the graph lives (before 0.43: MatMul4Bit, ctx.tensors)."""
    expandable_segments: bool = False
    fsdp_version: int = 1
    float8_gather: bool = False
    """FSDP2 gathers linear weights in 8 bits."""
    reshard_after_forward: bool = True
    reduce_bucket_elements: int = 500_000_000
    overlap_comm: bool = False
    max_live_elements: int = 1_000_000_000
    workspace_bytes: int = 8_519_680
    context_bytes: int = 300_000_000
    """What the process takes of the card before its first tensor."""
    capability: tuple[int, int] | None = None
    """CUDA compute capability of the card, when it is known."""
    transformer_engine: bool = False
    fp8: str = ""
    """The recipe of 8-bit products, where the profile counts them."""
    fp8_parameters: bool = False
    """Weights of 8-bit products have no 16-bit form at all."""
    fused_weight_gradients: bool = False
    """Products add weight gradients to the main gradients themselves (Megatron-LM: gradient accumulation fusion)."""
    vocabulary_multiple: int = 0
    """The vocabulary is padded to a multiple of this times the tensor parallel degree."""
    recomputed: frozenset[str] = frozenset()
    """Modules that selective checkpointing recomputes."""
    node_gpus: int = 8
    offload_optimizer: bool = False
    offload_parameters: bool = False
    offload_activations: bool = False
    frozen: Frozen = NOTHING
    """What is not trained."""
    asks_at_input: bool = False
    """Under checkpointing the embedded tokens ask for a gradient even where the embedding is frozen."""
    companions: tuple[Companion, ...] = ()
    """Other models of the training method."""
    sequences: int = 1
    """Of an example, all in `micro_batch`."""
    completion: int = 0
    """Tokens of the answer in each sequence, where a method's loss reads only those."""
    evaluation_batch: int = 0
    """Sequences of a micro-batch of the evaluation inside the run; 0 without one."""
    saves_whole: bool = False
    """A full state dict is written …"""
    saves_on_gpu: bool = False
    """… whose tensors stay on the GPU until all are there."""
    engine_bytes: int = 0
    """Of a generation engine on the same card …"""
    engine_sleeps: bool = False
    """… that gives its memory back while the policy is trained."""
