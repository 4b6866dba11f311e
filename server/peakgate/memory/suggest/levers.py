"""The levers: what may be changed of a job, one row a change, with the frameworks that have it.

Options of one lever exclude each other. `free` are those that cost little or no time (Lesson 6, section 3: "almost free"); a search tries
all of them together before it goes on to dearer ones. What a row's framework lacks for a model is not counted (`not_counted`), and a plan
that is not counted is not offered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peakgate.memory.change import Value
from peakgate.memory.dtypes import QUANTISED
from peakgate.memory.job import Job
from peakgate.memory.optimizers import step_temporary
from peakgate.memory.plan import FSDP, ZERO, Plan
from peakgate.memory.profiles.liger import FAMILIES

Changes = tuple[tuple[str, Value], ...]
Applies = Callable[[Job, Plan], bool]

HF = frozenset({"huggingface", "deepspeed", "colossalai"})
"""Frameworks that train Hugging Face's own modules."""

DEEPSPEED = frozenset({"huggingface", "deepspeed"})
"""Frameworks whose jobs run under DeepSpeed once they say ZeRO: transformers takes its configuration (TrainingArguments.deepspeed)."""

TORCH = frozenset({"torch", "torchtune", "torchtitan", "litgpt", "composer"})
MEGATRON, TEXTBOOK, LITGPT = frozenset({"megatron"}), frozenset({"textbook"}), frozenset({"litgpt"})
EVERY = HF | TORCH | MEGATRON | TEXTBOOK

FLASH_FROM = 8
"""FlashAttention-2 runs from compute capability 8 on (flash-attention README: Ampere, Ada, Hopper)."""

BFLOAT16_FROM = 8
"""Multiplies bfloat16 in its matrix units (torch.cuda.is_bf16_supported, including_emulation=False: major >= 8)."""

LITGPT_SCRIPT = ("the FSDPStrategy in LitGPT's script is changed for it: there is no option",)
"""LitGPT litgpt/finetune/lora.py and full.py: activation_checkpointing_policy={Block} and cpu_offload=False are written there."""

LITGPT_ONE_GPU = ("LitGPT's script is changed for it: it checkpoints blocks under FSDP alone, and has no option",)
"""litgpt/finetune/lora.py: on one device strategy = "auto"."""

TRAINER_OFFLOADS = ("the trainer has it, as TRL's have activation_offloading; transformers' own has not",)
"""TRL trl/trainer/sft_config.py, activation_offloading; transformers TrainingArguments has no such field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A change that a lever allows. `degree` names the number that the change varies; its value in `changes` is one of several."""

    lever: str
    title: str
    changes: Changes
    why: str
    frameworks: frozenset[str] = EVERY
    applies: Applies = lambda _job, _plan: True
    alters: str = ""
    free: bool = False
    degree: str = ""
    conditions: tuple[str, ...] = ()
    single_step: bool = False
    """Only without gradient accumulation."""

    @property
    def whole(self) -> bool:
        """Whether it goes all the way, and not for some layers or one checkpoint for several."""
        return self.degree != "checkpoint_layers" and not any(path == "checkpointing.every" for path, _ in self.changes)

    @property
    def kind(self) -> str:
        """The lever, and of checkpointing and sharding how far it goes."""
        told_apart = [str(value) for path, value in self.changes if path in ("checkpointing.mode", "parallelism.sharding")]
        return " ".join((self.lever, self.degree, *told_apart))


def _flash(_: Job, plan: Plan) -> bool:
    recent = plan.capability is None or plan.capability[0] >= FLASH_FROM
    return plan.attention != "flash" and "flash" in plan.architecture.implementations and recent and plan.formats.compute != "float32"


def _sdpa(_: Job, plan: Plan) -> bool:
    return plan.attention == "eager" and "sdpa" in plan.architecture.implementations


def _full_logits(_: Job, plan: Plan) -> bool:
    return plan.loss == "full"


def _liger(_: Job, plan: Plan) -> bool:
    return plan.architecture.block in FAMILIES


def _kernels(*names: str) -> Applies:
    return lambda _, plan: (
        plan.profile == "huggingface" and set(names) <= set(FAMILIES.get(plan.architecture.block, {})) - plan.fused_kernels
    )


def _adam(_: Job, plan: Plan) -> bool:
    return plan.optimizer in ("adam", "adamw")


def _temporary(job: Job, plan: Plan) -> bool:
    return _adam(job, plan) and not job.optimizer.in_backward and step_temporary(plan.optimizer, plan.implementation).all > 0


def _checkpoint(*modes: str) -> Applies:
    return lambda _, plan: plan.checkpointing in modes


def _megatron_module(name: str) -> Applies:
    def applies(_: Job, plan: Plan) -> bool:
        known = {"mla_up_proj": "kv_rank" in plan.architecture.dims, "moe_act": plan.architecture.dims["E"] > 0}
        return plan.checkpointing != "full" and name not in plan.recomputed and known.get(name, True)

    return applies


def _data(*kinds: str) -> Applies:
    return lambda _, plan: plan.degrees.data * plan.degrees.context > 1 and plan.degrees.sharding in kinds


def _zero(*kinds: str) -> Applies:
    """ZeRO-2 and 3 have no pipeline (deepspeed runtime/pipe/engine.py: "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism")."""
    return lambda job, plan: _data(*kinds)(job, plan) and plan.degrees.pipeline == 1 and not _quantised(plan)


def _quantised(plan: Plan) -> bool:
    return plan.lora is not None and plan.lora.base_dtype in QUANTISED


def _shards(_: Job, plan: Plan) -> bool:
    """Composer refuses it (composer/trainer/mosaic_fsdp_utils.py, get_cpu_offload: "FSDP CPU Offload not supported yet")."""
    return not plan.offload_parameters and plan.degrees.data > 1 and plan.degrees.sharding not in ZERO


def _is_dense(_: Job, plan: Plan) -> bool:
    return plan.architecture.network is None


def _adapters(job: Job, plan: Plan) -> bool:
    return plan.lora is None and plan.architecture.network is None and not job.frozen


def _recipe(job: Job, plan: Plan) -> bool:
    able = plan.capability is None or plan.capability[0] >= BFLOAT16_FROM
    return plan.formats.parameters == "float32" and job.precision.parameters is None and plan.lora is None and able


def _whole_base(_: Job, plan: Plan) -> bool:
    """Adapters on 16 bits a weight that every GPU holds whole: shards of 4-bit weights need a storage of their own (peft docs, fsdp)."""
    return plan.lora is not None and not _quantised(plan) and plan.degrees.sharding in ("none", "ddp") and plan.degrees.tensor == 1


def _one_gpu(_: Job, plan: Plan) -> bool:
    return plan.degrees.world == 1


def _rebuilds(_: Job, plan: Plan) -> bool:
    return plan.checkpointing in ("none", "selective") and plan.architecture.network is None


def _grows(_: Job, plan: Plan) -> bool:
    return not plan.expandable_segments and plan.cuda_graphs == "none"


SEGMENTS_WHY = "segments that grow leave fewer gaps; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
REBUILT_WHY = "keeps the input of each layer and runs its forward pass again"

OPTIONS: tuple[Option, ...] = (
    Option(lever="attention", title="FlashAttention", changes=(("attention.implementation", "flash"),), applies=_flash, free=True,
           frameworks=EVERY - {"litgpt", "torchtune", "torchtitan"}, why="never stores the s × s scores"),
    Option(lever="attention", title="torch's scaled_dot_product_attention", changes=(("attention.implementation", "sdpa"),), applies=_sdpa,
           free=True, frameworks=HF | {"torch"}, why="its memory-efficient kernel never stores the s × s scores"),
    Option(lever="mask", title="no mask handed to the model", changes=(("attention.mask", "none"),), free=True, frameworks=HF,
           applies=lambda job, _: job.attention.mask == "padding" and job.batch.packed is not False,
           why="attention needs no copies of keys and values for it", conditions=("every sequence is full",)),
    Option(lever="library", title="transformers 5", changes=(("framework.version", "5.0"),), free=True,
           frameworks=frozenset({"huggingface"}),
           applies=lambda job, plan: bool(job.framework.version) and (plan.builds_mask or plan.repeats_heads),
           why="builds no mask that nobody asked for, and copies no keys and values to all heads"),
    Option(lever="loss", title="fused head and loss (Liger)", changes=(("loss.implementation", "fused"),), free=True,
           frameworks=frozenset({"huggingface", "deepspeed"}), applies=lambda job, plan: _full_logits(job, plan) and _liger(job, plan),
           why="the logits are never whole"),
    Option(lever="loss", title="loss in chunks", changes=(("loss.implementation", "chunked"),), free=True,
           frameworks=frozenset({"torchtune"}), applies=_full_logits, why="the fp32 copies of the logits are made chunk by chunk"),
    Option(lever="loss", title="fused cross entropy", changes=(("framework.megatron.cross_entropy_fusion", True),), free=True,
           frameworks=MEGATRON, applies=lambda job, plan: plan.loss == "vocab-parallel" and job.loss.implementation != "full",
           why="the gradient of the logits takes their place"),
    Option(lever="logits", title="logits let go before the backward pass", changes=(("loss.keep_logits", False),), free=True,
           frameworks=frozenset({"torch", "colossalai"}), applies=lambda _, plan: plan.keep_logits and plan.loss == "full",
           why="`del logits` once the loss is there"),
    Option(lever="kernels", title="fused RMSNorm and SwiGLU (Liger)", free=True,
           changes=(("framework.fused_kernels", ("rms_norm", "swiglu")),), frameworks=frozenset({"huggingface", "deepspeed"}),
           applies=_kernels("rms_norm", "swiglu"),
           why="keeps no fp32 copy of a norm's input and no product of the gate"),
    Option(lever="kernels", title="fused RMSNorm and GeGLU (Liger)", free=True,
           changes=(("framework.fused_kernels", ("geglu", "rms_norm")),), frameworks=frozenset({"huggingface", "deepspeed"}),
           applies=_kernels("geglu", "rms_norm"),
           why="keeps no fp32 copy of a norm's input and no product of the gate"),
    Option(lever="optimizer", title="fused optimizer", changes=(("optimizer.implementation", "fused"),), applies=_temporary, free=True,
           frameworks=(HF | TORCH) - {"colossalai", "composer"}, why="its step makes no copy of all parameters"),
    Option(lever="optimizer", title="optimizer step inside the backward pass", changes=(("optimizer.in_backward", True),), free=True,
           frameworks=frozenset({"torchtune"}), single_step=True, why="a gradient is used and freed at once",
           applies=lambda job, plan: not job.optimizer.in_backward and plan.lora is None and plan.degrees.world == 1),
    Option(lever="segments", title="expandable segments of the caching allocator", changes=(("framework.expandable_segments", True),),
           applies=_grows, free=True, frameworks=EVERY - TEXTBOOK - MEGATRON, why=SEGMENTS_WHY),
    Option(lever="segments", title="expandable segments of the caching allocator", changes=(("framework.expandable_segments", True),),
           applies=_grows, free=True, frameworks=MEGATRON, why=SEGMENTS_WHY,
           conditions=("no user buffers are registered with NCCL (--nccl-ub)",)),
    Option(lever="checkpointing", title="selective recomputation of the attention core", changes=(("checkpointing.mode", "selective"),),
           frameworks=MEGATRON | TEXTBOOK, applies=lambda _, plan: plan.checkpointing == "none" and plan.attention == "eager",
           why="rebuilds the scores from Q, K and V in the backward pass"),
    Option(lever="checkpointing", title="selective checkpointing of operations", changes=(("checkpointing.mode", "selective"),),
           frameworks=frozenset({"torchtitan"}), applies=_checkpoint("none"), why="keeps the outputs of products and attention alone"),
    *(Option(lever="checkpointing", title=f"selective recomputation of {name}",
             changes=(("checkpointing.mode", "selective"), ("checkpointing.modules", ("core_attn", name))),
             frameworks=MEGATRON, applies=_megatron_module(name), why=f"rebuilds what {name} keeps")
      for name in ("layernorm", "moe_act", "mla_up_proj", "mlp")),
    Option(lever="sharding", title="distributed optimizer (ZeRO-1)", changes=(("framework.megatron.distributed_optimizer", True),),
           frameworks=MEGATRON, applies=_data("none", "ddp"), why="shards master weights and optimizer states; same communication"),
    Option(lever="sharding", title="ZeRO-1", changes=(("parallelism.sharding", "zero1"),), frameworks=frozenset({"deepspeed"}) | TEXTBOOK,
           applies=_data("none", "ddp"), why="shards optimizer states over the data parallel GPUs; same communication"),
    Option(lever="sharding", title="ZeRO-2", changes=(("parallelism.sharding", "zero2"),),
           frameworks=frozenset({"deepspeed", "colossalai"}) | TEXTBOOK, applies=_zero("none", "ddp", "zero1"),
           why="shards optimizer states and gradients; same communication"),
    Option(lever="sharding", title="ZeRO-2", changes=(("parallelism.sharding", "zero2"),), frameworks=frozenset({"huggingface"}),
           applies=_zero("zero1"), why="shards gradients too; same communication"),
    Option(lever="checkpointing", title="full checkpointing of some layers", changes=(("checkpointing.mode", "full"),),
           degree="checkpoint_layers", frameworks=MEGATRON | TEXTBOOK,
           applies=lambda job, plan: plan.checkpointing in ("none", "selective") and not job.checkpointing.layers and _is_dense(job, plan),
           why="keeps the inputs of some layers alone and runs those again"),
    Option(lever="checkpointing", title="full activation checkpointing", changes=(("checkpointing.mode", "full"),),
           applies=_rebuilds, frameworks=EVERY - {"litgpt"}, why=REBUILT_WHY),
    Option(lever="checkpointing", title="full activation checkpointing", changes=(("checkpointing.mode", "full"),),
           applies=lambda job, plan: _rebuilds(job, plan) and not _one_gpu(job, plan), frameworks=LITGPT, why=REBUILT_WHY),
    Option(lever="checkpointing", title="full activation checkpointing", changes=(("checkpointing.mode", "full"),),
           applies=lambda job, plan: _rebuilds(job, plan) and _one_gpu(job, plan), frameworks=LITGPT, why=REBUILT_WHY,
           conditions=LITGPT_ONE_GPU),
    Option(lever="sharding", title="ZeRO-3", changes=(("parallelism.sharding", "zero3"),), frameworks=frozenset({"deepspeed"}) | TEXTBOOK,
           applies=_zero("none", "ddp", "zero1", "zero2"), why="shards parameters too; 1.5 × the communication"),
    Option(lever="sharding", title="ZeRO-3", changes=(("parallelism.sharding", "zero3"),), frameworks=frozenset({"huggingface"}),
           applies=_zero("zero1", "zero2"), why="shards parameters too; 1.5 × the communication"),
    *(Option(lever="checkpointing", title=f"full checkpointing, one checkpoint for {every} layers",
             changes=(("checkpointing.mode", "full"), ("checkpointing.every", every)), frameworks=MEGATRON | TEXTBOOK | {"torch"},
             applies=lambda job, plan: not job.checkpointing.every and _is_dense(job, plan), why=REBUILT_WHY)
      for every in (2, 4)),
    Option(lever="sharding", title="HSDP: FSDP inside each node", changes=(("parallelism.sharding", "hsdp"),),
           frameworks=(TORCH | {"huggingface"}) - {"torchtune", "litgpt"},
           applies=lambda job, plan: _zero("none", "ddp")(job, plan) and plan.degrees.data > plan.node_gpus,
           why="shards parameters, gradients and states over a node; only gradients cross the network"),
    Option(lever="sharding", title="FSDP", changes=(("parallelism.sharding", "fsdp"),), frameworks=(TORCH | {"huggingface"}),
           applies=_zero("none", "ddp", "hsdp"), why="shards parameters, gradients and states; 1.5 × the communication"),
    Option(lever="reshard", title="parameters sharded again after forward", changes=(("framework.fsdp.reshard_after_forward", True),),
           frameworks=TORCH | {"huggingface"}, applies=lambda _, plan: plan.degrees.sharding in FSDP and not plan.reshard_after_forward,
           why="each layer is gathered twice and never stays"),
    Option(lever="tensor", title="tensor parallelism", changes=(), degree="tensor", frameworks=MEGATRON | TEXTBOOK | {"torchtitan"},
           applies=_is_dense, why="divides states and activations; communication in every layer, so inside a node"),
    Option(lever="pipeline", title="pipeline parallelism", changes=(), degree="pipeline", frameworks=MEGATRON | TEXTBOOK | {"torchtitan"},
           applies=lambda job, plan: _is_dense(job, plan) and not job.parallelism.stage_layers and not _gathers(plan),
           why="divides the layers; the first stage holds as many micro-batches as there are stages"),
    Option(lever="context", title="context parallelism", changes=(), degree="context", frameworks=MEGATRON | {"torchtitan"},
           applies=_is_dense, why="divides the tokens of each sequence"),
    Option(lever="expert", title="expert parallelism", changes=(), degree="expert", frameworks=MEGATRON | {"torchtitan"},
           applies=lambda _, plan: plan.architecture.dims.get("E", 0) > 1, why="divides the experts"),
    Option(lever="offload", title="offload of the optimizer to the host", changes=(("offload.optimizer", "cpu"),),
           frameworks=DEEPSPEED | TEXTBOOK, applies=lambda _, plan: not plan.offload_optimizer and _offloads(plan),
           why="master weights and optimizer states in the node's RAM"),
    Option(lever="offload", title="offload of optimizer and parameters to the host",
           changes=(("offload.optimizer", "cpu"), ("offload.parameters", "cpu")), frameworks=DEEPSPEED,
           applies=lambda _, plan: not plan.offload_parameters and _offloads(plan), why="all states in the node's RAM"),
    Option(lever="offload", title="FSDP's shards in the host's memory", changes=(("offload.parameters", "cpu"),),
           frameworks=frozenset({"torch", "torchtune", "torchtitan", "huggingface"}), applies=_shards,
           why="parameters, gradients and states in the node's RAM"),
    Option(lever="offload", title="FSDP's shards in the host's memory", changes=(("offload.parameters", "cpu"),), frameworks=LITGPT,
           applies=_shards, why="parameters, gradients and states in the node's RAM", conditions=LITGPT_SCRIPT),
    Option(lever="activations", title="checkpoints in the host's memory", changes=(("offload.activations", "cpu"),),
           frameworks=frozenset({"torchtune", "torch"}), applies=lambda _, plan: not plan.offload_activations,
           why="the inputs of the layers wait in the node's RAM"),
    Option(lever="activations", title="checkpoints in the host's memory", changes=(("offload.activations", "cpu"),),
           frameworks=frozenset({"huggingface"}), applies=lambda _, plan: not plan.offload_activations,
           why="the inputs of the layers wait in the node's RAM", conditions=TRAINER_OFFLOADS),
    Option(lever="optimizer", title="8-bit AdamW", changes=(("optimizer.name", "adamw-8bit"),), alters="numerics",
           frameworks=frozenset({"huggingface", "torchtune", "torch"}), applies=_adam, why="states in one byte each"),
    Option(lever="optimizer", title="paged 8-bit AdamW", changes=(("optimizer.name", "paged-adamw-8bit"),), alters="numerics",
           frameworks=frozenset({"huggingface", "torchtune", "torch"}), applies=_adam,
           why="states in one byte each, in memory that pages to the host"),
    Option(lever="precision", title="parameters and states in bfloat16", changes=(("precision.recipe", "bf16"),), alters="numerics",
           frameworks=frozenset({"huggingface", "torch", "torchtune", "litgpt"}), applies=_recipe,
           why="parameters, gradients and states in two bytes each in place of four"),
    Option(lever="base", title="the adapters' base in 4 bits (QLoRA)", changes=(("lora.base_dtype", "nf4"),), alters="numerics",
           frameworks=frozenset({"huggingface", "torchtune"}), applies=_whole_base,
           why="frozen weights in half a byte each, made 16 bits again for each product"),
    Option(lever="base", title="the adapters' base in 4 bits (--quantize bnb.nf4)", changes=(("lora.base_dtype", "nf4"),),
           alters="numerics", frameworks=LITGPT, applies=lambda job, plan: _whole_base(job, plan) and _one_gpu(job, plan),
           why="frozen weights in half a byte each, made 16 bits again for each product"),
    Option(lever="adapters", title="LoRA on every linear layer", changes=(("lora.rank", 16), ("lora.targets", ("all-linear",))),
           alters="objective", frameworks=frozenset({"huggingface", "deepspeed"}), applies=_adapters,
           why="only small adapters are trained"),
    Option(lever="adapters", title="LoRA", changes=(("lora.rank", 16),), alters="objective", frameworks=frozenset({"torchtune", "litgpt"}),
           applies=_adapters, why="only small adapters are trained"),
    Option(lever="adapters", title="QLoRA", changes=(("lora.rank", 16), ("lora.targets", ("all-linear",)), ("lora.base_dtype", "nf4")),
           alters="objective", frameworks=frozenset({"huggingface"}),
           applies=lambda job, plan: _adapters(job, plan) and plan.degrees.world == 1,
           why="adapters on a base of 4 bits a weight"),
)  # fmt: skip


FASTER: tuple[Option, ...] = (
    Option(lever="checkpointing", title="no activation checkpointing", changes=(("checkpointing.mode", "none"),),
           applies=_checkpoint("full", "selective"), frameworks=EVERY - {"litgpt"}, why="nothing is computed twice"),
    Option(lever="checkpointing", title="no activation checkpointing", changes=(("checkpointing.mode", "none"),),
           applies=_checkpoint("full", "selective"), frameworks=LITGPT, why="nothing is computed twice", conditions=LITGPT_SCRIPT),
    Option(lever="checkpointing", title="selective recomputation of the attention core", frameworks=MEGATRON,
           changes=(("checkpointing.mode", "selective"), ("checkpointing.modules", ("core_attn",))),
           applies=_checkpoint("full"), why="only the scores are computed twice"),
    Option(lever="checkpointing", title="selective checkpointing of operations", changes=(("checkpointing.mode", "selective"),),
           frameworks=frozenset({"torchtitan"}), applies=_checkpoint("full"), why="products and attention are computed once"),
    Option(lever="offload", title="no offload", changes=(("offload.optimizer", "none"), ("offload.parameters", "none")),
           applies=lambda _, plan: plan.offload_optimizer or plan.offload_parameters, why="nothing waits for the link to the host"),
    Option(lever="activations", title="checkpoints stay on the GPU", changes=(("offload.activations", "none"),),
           applies=lambda _, plan: plan.offload_activations, why="nothing waits for the link to the host"),
    Option(lever="optimizer", title="fused optimizer", changes=(("optimizer.implementation", "fused"),), applies=_temporary,
           frameworks=(HF | TORCH) - {"colossalai", "composer"}, why="one kernel for many tensors"),
)  # fmt: skip
"""What a job may leave away, or take, when it has room: it needs more then, or no less."""


def _gathers(plan: Plan) -> bool:
    return plan.degrees.sharding in ("zero2", "zero3") or (plan.degrees.sharding in FSDP and plan.framework != "torchtitan")


def _offloads(plan: Plan) -> bool:
    return plan.degrees.sharding in ZERO or plan.profile == "textbook"


def options_of(job: Job, plan: Plan, table: tuple[Option, ...] = OPTIONS) -> list[Option]:
    """The rows that a job's framework has and that change something of it; dear ones first, in the order of the table."""
    rows = [each for each in table if plan.framework in each.frameworks and each.applies(job, plan)]
    return [each for each in rows if not each.free] + [each for each in rows if each.free]
