"""When a job runs out of memory, and what follows from it: the table that a diagnosis is read from.

Sources: "Where Does the Memory Go When Training an LLM?", section 19.1.8 (load, forward, backward, first step, longer context) and table
19.1.9 (what each technique changes); ML Systems, Lesson 6 (step 1 against after hours, and the three causes of the latter); PyTorch's notes
on CUDA semantics (expandable segments) and torch.distributed.checkpoint (sharded saving); transformers training_args.py
(eval_accumulation_steps, prediction_loss_only).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """One of several causes: what it is, how one tells it from the others, and what mends it."""

    name: str
    sign: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A moment of a job. `phase` is the answer's word for it; `categories` are lines of the ledger, what to look at first in front."""

    name: str
    when: str
    phase: str
    categories: tuple[str, ...]
    why: str
    helps: tuple[str, ...]
    helps_not: tuple[tuple[str, str], ...] = ()
    """(what, why): fixes that act on another part of the ledger."""
    causes: tuple[Cause, ...] = ()


_BATCH = "a smaller micro-batch, gradient accumulation"
_NOT_STARTED = "the forward pass has not started, so no activation is there to be made smaller"

_LEAST_STATES = (
    "hold the weights in fewer bytes: bfloat16 (precision.parameters), or quantised under an adapter (lora.base_dtype: nf4)",
    "divide the weights among the GPUs: FSDP or ZeRO-3 (parallelism.sharding), tensor or pipeline parallelism",
    "build the model on the meta device or the host, and shard it before it reaches the card",
)

STAGES = (
    Stage(
        name="load",
        when="while the model was loaded",
        phase="load",
        categories=("parameters",),
        why="nothing but the weights is on the card yet: they do not fit, or not beside the copy that loading makes",
        helps=_LEAST_STATES,
        helps_not=((_BATCH, _NOT_STARTED), ("activation checkpointing", _NOT_STARTED)),
    ),
    Stage(
        name="setup",
        when="while the optimizer was set up",
        phase="load",
        categories=("master_weights", "optimizer_states"),
        why="the optimizer makes its float32 copy of the weights before the first step",
        helps=(
            "divide the optimizer's part among the GPUs: ZeRO-1 or more, FSDP (parallelism.sharding)",
            "move it to the host (offload.optimizer: cpu)",
            "train fewer parameters (lora), or without master weights (precision.recipe: bf16)",
        ),
        helps_not=((_BATCH, _NOT_STARTED), ("activation checkpointing", _NOT_STARTED)),
    ),
    Stage(
        name="forward",
        when="in the forward pass",
        phase="forward",
        categories=("activations", "temporaries"),
        why="the model fits, and what it keeps for the backward pass or needs for one operation does not",
        helps=(
            "a smaller micro-batch, with more accumulation steps in its place (batch.micro_batch_size)",
            "a shorter sequence (batch.sequence_length)",
            "attention that writes no scores (attention.implementation: flash or sdpa)",
            "activation checkpointing (checkpointing.mode: full)",
        ),
        helps_not=(
            ("more accumulation steps at the same micro-batch", "each forward pass is as large as before"),
            (
                "an 8-bit optimizer",
                "its states appear at the first step, behind this pass; later it makes room, and the first pass fails as before",
            ),
        ),
    ),
    Stage(
        name="loss",
        when="in the loss",
        phase="loss",
        categories=("logits", "temporaries"),
        why="the logits and their float32 copies are as large as tokens times vocabulary",
        helps=(
            "a loss that never holds all logits (loss.implementation: chunked or fused; Liger's kernels)",
            "a smaller micro-batch or a shorter sequence",
            "logits divided over tensor-parallel ranks (loss.implementation: vocab-parallel)",
        ),
        helps_not=(
            ("activation checkpointing", "the logits lie behind the layers that it recomputes"),
            ("another attention", "it changes nothing behind the last layer"),
        ),
    ),
    Stage(
        name="backward",
        when="in the backward pass",
        phase="backward",
        categories=("activations", "gradients", "temporaries"),
        why="the forward pass fitted; gradients and the buffers of their computation come on top of what it kept",
        helps=(
            "activation checkpointing (checkpointing.mode: full)",
            "a smaller micro-batch, with more accumulation steps in its place (batch.micro_batch_size)",
            "gradients divided among the GPUs: ZeRO-2 or FSDP (parallelism.sharding)",
        ),
        helps_not=(
            ("more accumulation steps at the same micro-batch", "each backward pass is as large as before"),
            ("clearing PyTorch's cache by hand", "the allocator did so before it failed"),
        ),
    ),
    Stage(
        name="first-step",
        when="in the optimizer's step",
        phase="optimizer",
        categories=("optimizer_states", "temporaries", "master_weights"),
        why="the backward pass is over; the optimizer's states (AdamW: two values a parameter) come at the first step, its buffers at each",
        helps=(
            "states of fewer bytes (optimizer.name: adamw-8bit), or fewer of them (adafactor, lion)",
            "states divided among the GPUs: ZeRO-1 or more, FSDP (parallelism.sharding)",
            "an implementation without a copy of all gradients (optimizer.implementation: fused)",
            "fewer trained parameters (lora), or states on the host (offload.optimizer: cpu)",
        ),
        helps_not=(
            (_BATCH, "the activations are gone when the optimizer runs"),
            ("activation checkpointing", "the activations are gone when the optimizer runs"),
        ),
    ),
    Stage(
        name="longer-context",
        when="when the context became longer",
        phase="",
        categories=("activations", "logits"),
        why="activations and logits grow with the sequence, the scores of plain attention with its square; nothing else changed",
        helps=(
            "attention that writes no scores (attention.implementation: flash or sdpa): first of all",
            "activation checkpointing (checkpointing.mode: full)",
            "the sequence divided among the GPUs (parallelism.context, parallelism.sequence_parallel)",
            "a loss that never holds all logits (loss.implementation: chunked or fused)",
        ),
        helps_not=(
            ("fewer bytes for parameters, or sharding them", "they do not grow with the sequence"),
            ("an 8-bit optimizer", "its states do not grow with the sequence"),
        ),
    ),
    Stage(
        name="hours-later",
        when="after many steps that went well",
        phase="",
        categories=("fragmentation", "activations"),
        why="the same step has fitted before, so its size is not the cause",
        helps=("find out which of the three causes it is: log torch.cuda.memory_allocated and memory_reserved at each step",),
        helps_not=(("what makes every step smaller", "it puts off a leak and hides a long batch, and the job fails later"),),
        causes=(
            Cause(
                "fragmentation",
                "reserved grows and allocated does not; much is reserved by PyTorch but unallocated",
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (framework.expandable_segments: true)",
            ),
            Cause(
                "a longer batch than usual",
                "allocated jumps in one step; batches are padded to their own longest example",
                "cap the length, pack the examples, or judge the job at its longest (batch.sequence_length)",
            ),
            Cause(
                "a leak",
                "allocated grows from step to step, as it does when loss tensors are kept with their graph, in a list or a sum",
                "keep loss.item() or loss.detach(); torch.cuda.memory._record_memory_history shows who holds the rest",
            ),
        ),
    ),
    Stage(
        name="evaluation",
        when="in the evaluation",
        phase="evaluate",
        categories=("logits", "activations"),
        why="an evaluation has a batch of its own, and may keep the logits of all of its batches",
        helps=(
            "a smaller batch of evaluation (evaluate.micro_batch_size; per_device_eval_batch_size)",
            "logits moved to the host on the way, or not kept (eval_accumulation_steps, prediction_loss_only)",
            "a forward pass under torch.no_grad(), in evaluation mode",
        ),
        helps_not=(
            ("activation checkpointing", "without a backward pass nothing is kept that it could recompute"),
            ("an 8-bit optimizer, a fused step", "they make room, and an evaluation that keeps its logits fills it"),
        ),
    ),
    Stage(
        name="generation",
        when="while text was generated",
        phase="",
        categories=("temporaries", "activations"),
        why="each sequence that is generated keeps the keys and values of its tokens beside the states of training",
        helps=(
            "fewer sequences at a time, or fewer new tokens",
            "a generator on other GPUs, or one that gives its memory back (method.generation)",
        ),
        helps_not=(("activation checkpointing", "generation has no backward pass"),),
    ),
    Stage(
        name="save",
        when="while a checkpoint was saved",
        phase="save",
        categories=("communication", "parameters"),
        why="a whole state dict gathers on one rank what training had divided",
        helps=(
            "save shards (save.full_state_dict: false; FSDP: SHARDED_STATE_DICT, torch.distributed.checkpoint)",
            "gather on the host of one rank alone (FSDP: offload_to_cpu and rank0_only; DeepSpeed: convert behind the run)",
        ),
        helps_not=(
            (_BATCH, "no batch is on its way while a checkpoint is saved"),
            ("activation checkpointing", "no batch is on its way while a checkpoint is saved"),
        ),
    ),
)
BY_NAME = {stage.name: stage for stage in STAGES}

FIRST_STEP = "in the first step, so this job never fitted: look at the logits, the micro-batch, and whether recomputation is on at all"
"""Lesson 6: at step 1 the estimate is wrong."""

ELSEWHERE = {
    "library": Stage(
        name="library",
        when="when a CUDA library asked for memory of its own",
        phase="",
        categories=("runtime", "fragmentation"),
        why="handles and workspaces of libraries lie outside PyTorch's cache, which has taken the rest of the card",
        helps=(
            "see with nvidia-smi whether another process sits on the same card",
            "leave room beside PyTorch's cache: torch.cuda.set_per_process_memory_fraction(0.95)",
            "whatever makes the peak smaller: `peakgate suggest JOB`",
        ),
    ),
    "network": Stage(
        name="network",
        when="when NCCL asked for its buffers",
        phase="",
        categories=("communication", "runtime"),
        why="each communicator has buffers outside PyTorch's cache; or another rank failed first and took the connection with it",
        helps=(
            "look for the first failure among the ranks' logs: this one may only follow from it",
            "leave room beside PyTorch's cache: torch.cuda.set_per_process_memory_fraction(0.95)",
            "fewer process groups; NCCL_DEBUG=INFO names what was asked for",
        ),
    ),
    "host": Stage(
        name="host",
        when="in the main memory of the node",
        phase="",
        categories=(),
        why="the GPU is not what ran out: main memory holds the weights while they load, what is offloaded, and the data loader's copies",
        helps=(
            "ask the scheduler for more memory a node (Slurm --mem, Kubernetes resources.limits.memory)",
            "load on one rank, or on the meta device, instead of once a rank (low_cpu_mem_usage, fsdp_cpu_ram_efficient_loading)",
            "fewer data loader workers, less prefetch, no caching of the data set in memory",
            "less offload (offload.optimizer, offload.parameters), or more nodes to divide it",
        ),
        helps_not=(("a smaller micro-batch, activation checkpointing", "they make room on the GPU, which had room"),),
    ),
}
"""Where memory ran out that is not PyTorch's part of the card: by `messages.Kind.where`."""

UNKNOWN = Stage(
    name="unknown",
    when="at a moment that the log does not show",
    phase="",
    categories=(),
    why="no traceback stands above the message",
    helps=(
        "say when it was: --stage load, forward, backward, first-step, longer-context, hours-later, evaluation or save",
        "what the peak consists of, and what makes it smaller: `peakgate explain JOB`, `peakgate suggest JOB`",
    ),
)
