"""The job document as frozen dataclasses: what a submitter stated, and nothing more.

A field that was not stated is None; `defaults.py` fills it for the job's framework and names every value it filled. Field
names are those of the message `peakgate.v1.TrainingJob`. Sizes are in bytes, lengths in tokens or pixels, lists are tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiHeadLatentAttention:
    """Ranks and head widths of multi-head latent attention (DeepSeek-V2)."""

    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    qk_nope_head_dim: int | None = None
    v_head_dim: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Dimensions of a transformer; `block` is a Hugging Face model_type, or `gpt` for the textbook's layer."""

    block: str = ""
    head: str | None = None
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn_hidden_size: int | None = None
    vocab_size: int | None = None
    tied_embeddings: bool | None = None
    max_positions: int | None = None
    encoder_layers: int | None = None
    sliding_window: int | None = None
    mtp_layers: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    shared_experts: int | None = None
    expert_ffn_hidden_size: int | None = None
    dense_layers: int | None = None
    mla: MultiHeadLatentAttention | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a plain network. It takes the output before it, or the earlier ones that `inputs` name."""

    op: str = ""
    out: int | None = None
    p: float | None = None
    kernel: int | None = None
    stride: int | None = None
    padding: int | None = None
    bias: bool | None = None
    groups: int | None = None
    name: str = ""
    inputs: tuple[str, ...] = ()
    size: int | None = None
    heads: int | None = None
    scale: int | None = None
    dilation: int | None = None
    inplace: bool | None = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Any plain network: the shape of one example, a loss, and operations in order."""

    input: tuple[int, ...] = ()
    loss: str | None = None
    layers: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is trained: exactly one field is set."""

    preset: str | None = None
    hf_config: Mapping[str, object] | None = None
    transformer: Transformer | None = None
    operations: Operations | None = None
    profile: Mapping[str, object] | None = None
    parameters: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Generation during training."""

    mode: str | None = None
    colocated: bool | None = None
    memory_fraction: float | None = None
    sleep: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How the model is trained, and which other models are resident."""

    name: str | None = None
    reference: str | None = None
    sequences_per_example: int | None = None
    generation: Generation | None = None
    critic: Model | None = None
    teacher: Model | None = None
    reward: Model | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate:
    """An evaluation phase inside the run."""

    micro_batch_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """How checkpoints are written."""

    full_state_dict: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceLengths:
    """A distribution of sequence lengths in tokens."""

    p50: int | None = None
    p99: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sizes of one micro-batch on one GPU."""

    micro_batch_size: int | None = None
    sequence_length: int | None = None
    sequence_length_is: str | None = None
    sequence_lengths: SequenceLengths | None = None
    target_length: int | None = None
    gradient_accumulation_steps: int | None = None
    packed: bool | None = None
    image_size: int | None = None
    patch_size: int | None = None
    grid: tuple[int, ...] = ()
    patch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fp8:
    """Settings of 8-bit floating point."""

    recipe: str | None = None
    param_gather: bool | None = None
    keep_transpose: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Number formats; a state that is set wins over the recipe."""

    recipe: str | None = None
    parameters: str | None = None
    gradients: str | None = None
    master_weights: str | None = None
    optimizer_states: str | None = None
    compute: str | None = None
    fp8: Fp8 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """The optimizer and how it is implemented."""

    name: str | None = None
    implementation: str | None = None
    in_backward: bool | None = None
    set_to_none: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The attention kernel and the mask that the model is handed."""

    implementation: str | None = None
    mask: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """Dropout probabilities."""

    attention: float | None = None
    hidden: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """Activation checkpointing."""

    mode: str | None = None
    every: int | None = None
    layers: int | None = None
    modules: tuple[str, ...] = ()
    reentrant: bool | None = None
    budget: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """How the loss is computed."""

    implementation: str | None = None
    keep_logits: bool | None = None
    create_graph_factor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Low-rank adapters on a frozen base."""

    method: str | None = None
    rank: int | None = None
    dropout: float | None = None
    targets: tuple[str, ...] = ()
    base_dtype: str | None = None
    double_quant: bool | None = None
    adapter_dtype: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """What is moved off the GPU."""

    parameters: str | None = None
    optimizer: str | None = None
    activations: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """Degrees of parallelism."""

    world_size: int | None = None
    sharding: str | None = None
    shard_degree: int | None = None
    tensor: int | None = None
    sequence_parallel: bool | None = None
    pipeline: int | None = None
    virtual_pipeline: int | None = None
    pipeline_schedule: str | None = None
    stage_layers: tuple[int, ...] = ()
    context: int | None = None
    expert: int | None = None
    context_type: str | None = None
    expert_imbalance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddp:
    """Details of DistributedDataParallel."""

    bucket_cap_mb: int | None = None
    gradient_as_bucket_view: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Zero:
    """Details of DeepSpeed ZeRO; sizes in elements."""

    reduce_bucket_size: int | None = None
    allgather_bucket_size: int | None = None
    overlap_comm: bool | None = None
    max_live_parameters: int | None = None
    prefetch_bucket_size: int | None = None
    param_persistence_threshold: int | None = None
    contiguous_gradients: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fsdp:
    """Details of FSDP."""

    reshard_after_forward: bool | None = None
    version: int | None = None
    limit_all_gathers: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Megatron:
    """Details of Megatron-LM."""

    distributed_optimizer: bool | None = None
    cross_entropy_fusion: bool | None = None
    transformer_impl: str | None = None
    overlap_grad_reduce: bool | None = None
    gradient_accumulation_fusion: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """The training framework, whose kernels and defaults hold."""

    name: str | None = None
    version: str | None = None
    torch: str | None = None
    cuda: str | None = None
    bitsandbytes: str | None = None
    compile: bool | None = None
    cuda_graphs: str | None = None
    expandable_segments: bool | None = None
    fused_kernels: tuple[str, ...] = ()
    ddp: Ddp | None = None
    zero: Zero | None = None
    fsdp: Fsdp | None = None
    megatron: Megatron | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPU that is asked for; `memory_bytes` is the card's total and wins over the catalogue."""

    type: str | None = None
    memory_bytes: int | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The node around the GPU."""

    gpus: int | None = None
    host_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job as stated. A sub-message that was not stated is its empty dataclass, or None for `lora`."""

    name: str = ""
    model: Model = field(default_factory=Model)
    method: Method = field(default_factory=Method)
    frozen: tuple[str, ...] = ()
    evaluate: Evaluate = field(default_factory=Evaluate)
    save: Save = field(default_factory=Save)
    batch: Batch = field(default_factory=Batch)
    precision: Precision = field(default_factory=Precision)
    optimizer: Optimizer = field(default_factory=Optimizer)
    attention: Attention = field(default_factory=Attention)
    dropout: Dropout = field(default_factory=Dropout)
    checkpointing: Checkpointing = field(default_factory=Checkpointing)
    loss: Loss = field(default_factory=Loss)
    lora: Lora | None = None
    offload: Offload = field(default_factory=Offload)
    parallelism: Parallelism = field(default_factory=Parallelism)
    framework: Framework = field(default_factory=Framework)
    gpu: Gpu = field(default_factory=Gpu)
    node: Node = field(default_factory=Node)
    unread: tuple[str, ...] = ()
    """What a launch file says that no field can, and that changes memory."""
