"""From what a job states to a plan in which every field is decided, with every value that was filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.memory.architecture import Architecture
from peakgate.memory.defaults import default_of
from peakgate.memory.dtypes import QUANTISED
from peakgate.memory.job import Fsdp, Job, Megatron, Zero
from peakgate.memory.lengths import lengths_of
from peakgate.memory.plan import Degrees, Formats, LoraPlan, Plan
from peakgate.memory.profiles import EARLIER, PROFILES, profile_name, profile_of
from peakgate.memory.profiles.profile import Profile
from peakgate.memory.recipes import formats_of
from peakgate.memory.routed import expert_shard

LORA_NAMES = {
    "q_proj": "q",
    "k_proj": "k",
    "v_proj": "v",
    "o_proj": "o",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
    "c_attn": "qkv",
    "query_key_value": "qkv",
    "qkv_proj": "qkv",
    "c_proj": "o",
    "out_proj": "o",
    "dense": "o",
    "c_fc": "up",
    "fc1": "up",
    "fc2": "down",
    "dense_h_to_4h": "up",
    "dense_4h_to_h": "down",
    "gate_up_proj": "gate_up",
    "output_proj": "o",
    "query": "q",
    "key": "k",
    "value": "v",
    "wi": "up",
    "wi_0": "gate",
    "wi_1": "up",
    "wo": "down",
    "Wqkv": "qkv",
    "w1": "gate",
    "w2": "down",
    "w3": "up",
    "lm_head": "head",
}
"""Names of linear layers in model code -> names in the blocks."""

FUSION = "framework.megatron.gradient_accumulation_fusion"

LATENT_NAMES = {"q_a_proj": "q_a", "q_b_proj": "q_b", "kv_a_proj_with_mqa": "kv_a", "kv_b_proj": "kv_b"}
"""Those of multi-head latent attention (transformers models/deepseek_v3/modeling_deepseek_v3.py)."""

ALL_LINEAR = {"attention_mla": frozenset(LATENT_NAMES.values()), "moe_gated": frozenset({"shared_gate"})}
"""What single blocks add to peft's all-linear: every linear layer but the head (tuners/tuners_utils.py)."""

JOINED = ("gpt2", "neox", "phi3", "falcon", "textbook", "bloom", "mpt")
"""Attention blocks with one matrix for queries, keys and values."""

FUSED = {"q": "qkv", "k": "qkv", "v": "qkv", "gate": "gate_up", "up": "gate_up"}
"""Llama's names on blocks that join the matrices (contract: Llama's names on every block)."""


NODE_GPUS = int(default_of("*", "node.gpus").value)
"""Hybrid sharding shards inside a node when no degree is stated (torch fsdp/_init_utils.py: _init_intra_and_inter_node_groups)."""


@dataclass(slots=True)
class Resolver:
    """Fills fields from the table of defaults and remembers what it filled."""

    framework: str
    assumptions: list[str]

    def text(self, stated: str | None, field: str) -> str:
        """The stated word, or the framework's."""
        return self._assumed(field) if stated is None else stated

    def whole(self, stated: int | None, field: str) -> int:
        """The stated number, or the framework's."""
        return int(self._assumed(field)) if stated is None else stated

    def flag(self, stated: bool | None, field: str) -> bool:  # noqa: FBT001 - a value, not a switch
        """The stated flag, or the framework's."""
        return self._assumed(field) == "true" if stated is None else stated

    def _assumed(self, field: str) -> str:
        row = default_of(self.framework, field)
        self.assumptions.append(f"{field}: {row.value} ({row.source})")
        return row.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A plan and what was assumed for it; `undecided` is what this version cannot count."""

    plan: Plan
    assumptions: tuple[str, ...]
    undecided: tuple[str, ...]


def resolve(job: Job, architecture: Architecture, world: int) -> Resolved:
    """Decides every field of a job whose model, micro-batch and sequence are known (tests: `check.py` has passed it)."""
    row = default_of("operations" if architecture.network else "*", "framework.name")
    framework = job.framework.name or row.value
    fill = Resolver(framework, [] if job.framework.name else [f"framework.name: {framework} ({row.source})"])
    formats = formats_of(job.precision, fill.text(job.precision.recipe, "precision.recipe"))
    lora = _lora(job, fill, architecture, formats)
    formats = _of_base(formats, lora)
    degrees = _degrees(job, fill, world, framework)
    mode = fill.text(job.checkpointing.mode, "checkpointing.mode")
    attention = _implemented(fill.text(job.attention.implementation, "attention.implementation"), architecture, fill)
    packed = fill.flag(job.batch.packed, "batch.packed")
    mask = _mask(job, fill, packed=packed)
    fill.text(job.batch.sequence_length_is, "batch.sequence_length_is")
    causal = architecture.traits.get("objective") != "plain"
    lengths = lengths_of(job, architecture)
    if architecture.encoder and not job.batch.target_length:
        fill.assumptions.append(f"batch.target_length: {lengths.target} (as long as the stated sequence)")
    plan = Plan(
        architecture=architecture,
        micro_batch=job.batch.micro_batch_size or 0,
        sequence=lengths.sequence,
        target=lengths.target,
        image=lengths.image,
        patch=lengths.patch,
        accumulation=fill.whole(job.batch.gradient_accumulation_steps, "batch.gradient_accumulation_steps"),
        profile=_profile(job, fill, architecture.block),
        framework=framework,
        attention=attention,
        builds_mask=not packed or mask == "padding" or (mask == "none" and causal and builds_mask(framework, job.framework.version)),
        repeats_heads=repeats_heads(framework, job.framework.version),
        dropout_attention=_dropout(job.dropout.attention, architecture.attention_dropout, "attention", fill),
        dropout_hidden=_dropout(job.dropout.hidden, architecture.hidden_dropout, "hidden", fill),
        checkpointing=mode,
        checkpoint_every=job.checkpointing.every or 1,
        checkpoint_layers=job.checkpointing.layers or 0,
        reentrant=mode == "full" and fill.flag(job.checkpointing.reentrant, "checkpointing.reentrant"),
        formats=_in_buckets(formats, job, degrees, fill),
        lora=lora,
        degrees=degrees,
        optimizer=_optimizer(job, fill, lora),
        implementation=fill.text(job.optimizer.implementation, "optimizer.implementation"),
        set_to_none=fill.flag(job.optimizer.set_to_none, "optimizer.set_to_none"),
        in_backward=fill.flag(job.optimizer.in_backward, "optimizer.in_backward"),
        loss=_loss(job, fill),
        keep_logits=fill.flag(job.loss.keep_logits, "loss.keep_logits"),
        fused_kernels=frozenset(job.framework.fused_kernels),
        compiled=job.framework.compile or False,
        pins_inputs=lora is not None and lora.base_dtype in QUANTISED and _pins_inputs(job, fill),
        expandable_segments=fill.flag(job.framework.expandable_segments, "framework.expandable_segments"),
        bucket_view=bool(job.framework.ddp and job.framework.ddp.gradient_as_bucket_view),
        offload_optimizer=job.offload.optimizer not in (None, "none"),
        offload_parameters=job.offload.parameters not in (None, "none"),
        offload_activations=job.offload.activations not in (None, "none"),
    )
    plan = _placed(plan, job)
    if framework == "megatron":
        plan = _with_megatron(plan, job, fill)
    return Resolved(plan=plan, assumptions=tuple(fill.assumptions), undecided=not_counted(job, plan))


def _with_megatron(plan: Plan, job: Job, fill: Resolver) -> Plan:
    """Settings that only Megatron-LM has; its unfused attention is the only one without Transformer Engine (gpt_layer_specs.py)."""
    details = job.framework.megatron or Megatron()
    engine = fill.text(details.transformer_impl, "framework.megatron.transformer_impl") == "transformer_engine"
    modules = job.checkpointing.modules or ("core_attn",)
    return replace(
        plan,
        transformer_engine=engine,
        attention=plan.attention if engine else "eager",
        fused_weight_gradients=plan.lora is None and fill.flag(details.gradient_accumulation_fusion, FUSION),
        vocabulary_multiple=profile_of("megatron").vocabulary_multiple,
        recomputed=frozenset(modules) if plan.checkpointing == "selective" else frozenset(),
    )


def _mask(job: Job, fill: Resolver, *, packed: bool) -> str:
    """A batch that is not packed carries a padding mask."""
    if job.attention.mask is None and not packed:
        fill.assumptions.append("attention.mask: padding (batch.packed is false)")
        return "padding"
    return fill.text(job.attention.mask, "attention.mask")


def _of_base(formats: Formats, lora: LoraPlan | None) -> Formats:
    """Under adapters the weights are stored in the base's format; a recipe that computes in its parameters' format then computes in it."""
    if lora is None or lora.base_dtype in QUANTISED or lora.base_dtype == formats.parameters:
        return formats
    mixed = formats.autocast or formats.compute != formats.parameters
    return replace(formats, parameters=lora.base_dtype, compute=formats.compute if mixed else lora.base_dtype)
def _placed(plan: Plan, job: Job) -> Plan:
    """The plan with the details of FSDP and ZeRO."""
    fsdp, zero = job.framework.fsdp or Fsdp(), job.framework.zero or Zero()
    return replace(
        plan,
        fsdp_version=fsdp.version or int(default_of(plan.framework, "framework.fsdp.version").value),
        float8_gather=_float8_gather(job, plan.framework),
        reshard_after_forward=fsdp.reshard_after_forward is not False,
        reduce_bucket_elements=zero.reduce_bucket_size or 500_000_000,
        overlap_comm=zero.overlap_comm or False,
        max_live_elements=zero.max_live_parameters or 1_000_000_000,
    )


def _float8_gather(job: Job, framework: str) -> bool:
    """Weights gathered in 8 bits: stated, or the framework's choice for 8-bit products."""
    stated = job.precision.fp8.param_gather if job.precision.fp8 else None
    if stated is not None:
        return stated
    return job.precision.compute == "float8" and default_of(framework, "precision.fp8.param_gather").value == "true"


def _implemented(attention: str, architecture: Architecture, fill: Resolver) -> str:
    """What transformers runs when a model's class lacks an implementation (modeling_utils.py: falls back to eager)."""
    if fill.framework != "huggingface" or attention in architecture.implementations:
        return attention
    fill.assumptions.append(f"attention.implementation: eager (transformers has no {attention} attention for {architecture.block})")
    return "eager"


def _dropout(stated: float | None, of_config: float, which: str, fill: Resolver) -> float:
    if stated is not None:
        return stated
    fill.assumptions.append(f"dropout.{which}: {of_config:g} (the model's config)")
    return of_config


def _lora(job: Job, fill: Resolver, architecture: Architecture, formats: Formats) -> LoraPlan | None:
    if job.lora is None:
        return None
    lora = job.lora
    base = lora.base_dtype or formats.parameters
    if not lora.base_dtype:
        fill.assumptions.append(f"lora.base_dtype: {base} (the recipe's parameters)")
    names = lora.targets or tuple(fill.text(None, "lora.targets").split(", "))
    adapter = fill.text(lora.adapter_dtype, "lora.adapter_dtype")
    profile = profile_of(profile_name(fill.framework, job.framework.version))
    return LoraPlan(
        rank=fill.whole(lora.rank, "lora.rank"),
        targets=targets_of(names, architecture, profile),
        dropout=lora.dropout or 0.0,
        base_dtype=base,
        double_quant=base in QUANTISED and (profile.double_quant or fill.flag(lora.double_quant, "lora.double_quant")),
        adapter_dtype=formats.parameters if adapter == "parameters" else adapter,
    )


def _profile(job: Job, fill: Resolver, block: str) -> str:
    """The kernel profile's name; that of an earlier version is an assumption of its own. A block may be none of the framework's modules."""
    name = profile_name(fill.framework, job.framework.version)
    if name in EARLIER:
        fill.text(job.framework.version, "framework.version")
    return name if profile_of(name).models(block) else "huggingface"


def _optimizer(job: Job, fill: Resolver, lora: LoraPlan | None) -> str:
    """The optimizer's name; a framework may exchange it where the base is quantised (litgpt finetune/lora.py: bnb.optim.PagedAdamW)."""
    name = fill.text(job.optimizer.name, "optimizer.name")
    if lora is None or lora.base_dtype not in QUANTISED:
        return name
    exchanged = profile_of(profile_name(fill.framework, job.framework.version)).optimizers_of_4bit.get(name, name)
    if exchanged != name:
        fill.assumptions.append(f"optimizer.name: {exchanged} ({fill.framework} takes it where the base is quantised)")
    return exchanged


def _loss(job: Job, fill: Resolver) -> str:
    """How the loss is computed: Megatron-LM's split the vocabulary, the fused one in place; torchtune's recipes are chunked from 0.4 on."""
    if job.loss.implementation is None and job.framework.megatron and job.framework.megatron.cross_entropy_fusion:
        return "in-place"
    newer = fill.framework == "torchtune" and version_of(job.framework.version) >= (0, 4)
    source = replace(fill, framework="torchtune-0.4") if newer else fill
    stated = source.text(job.loss.implementation, "loss.implementation")
    return {"fused": "in-place", "full": "vocab-parallel"}.get(stated, stated) if fill.framework == "megatron" else stated


def _pins_inputs(job: Job, fill: Resolver) -> bool:
    """bitsandbytes autograd/_functions.py, MatMul4Bit: `ctx.tensors = (A, B)` up to 0.42, (None, B) from 0.43 on.

    torchtune does not use it.
    """
    return fill.framework != "torchtune" and version_of(fill.text(job.framework.bitsandbytes, "framework.bitsandbytes")) < (0, 43)


def targets_of(names: tuple[str, ...], architecture: Architecture, profile: Profile) -> frozenset[str]:
    """The blocks' names of adapted layers; all-linear is every linear layer but the head."""
    if profile.adapts_parts:
        return _parts_of(names)
    joined = "qkv" if any(block in architecture.roles["attention"] for block in JOINED) else ""
    if "all-linear" in names:
        own = (ALL_LINEAR.get(architecture.roles[role], frozenset()) for role in ("attention", "mlp"))
        return frozenset({"q", "k", "v", "o", "qkv", "gate", "up", "down", "gate_up"}).union(*own)
    short = {(LORA_NAMES | LATENT_NAMES).get(name.rsplit(".", 1)[-1], name) for name in names}
    gated = architecture.roles["mlp"] == "mlp_fused"
    return frozenset(FUSED[s] if (joined and s in ("q", "k", "v")) or (gated and s in ("gate", "up")) else s for s in short)


def _parts_of(names: tuple[str, ...]) -> frozenset[str]:
    """Adapted layers where queries, keys and values are one matrix whose parts are adapted one by one."""
    short = {LORA_NAMES.get(name.rsplit(".", 1)[-1], name) for name in names}
    every = {"q", "k", "v", "o", "gate", "up", "down"} if "all-linear" in names else set()
    return frozenset((short - {"qkv"}) | every | ({"q", "k", "v"} if "qkv" in short else set()))


def _degrees(job: Job, fill: Resolver, world: int, framework: str) -> Degrees:
    p = job.parallelism
    tensor, pipeline, context = p.tensor or 1, p.pipeline or 1, p.context or 1
    data = max(1, world // (tensor * pipeline * context))
    if p.world_size is None and job.gpu.count is None:
        fill.assumptions.append(f"parallelism.world_size: {world} (the smallest that the degrees allow)")
    sharding = p.sharding or ("none" if data == 1 and context == 1 else fill.text(None, "parallelism.sharding"))
    if sharding == "none" and data > 1:
        sharding = "ddp"
    distributed = bool(job.framework.megatron and job.framework.megatron.distributed_optimizer)
    if framework == "megatron" and distributed and sharding in ("none", "ddp"):
        sharding = "zero1"
    degrees = Degrees(
        world=world,
        data=data,
        shard=p.shard_degree or (min(data * context, job.node.gpus or NODE_GPUS) if sharding == "hsdp" else data * context),
        sharding=sharding,
        tensor=tensor,
        sequence_parallel=p.sequence_parallel or False,
        pipeline=pipeline,
        virtual_pipeline=p.virtual_pipeline or 1,
        schedule=p.pipeline_schedule or "1f1b",
        stage_layers=p.stage_layers,
        context=context,
        expert=p.expert or 1,
    )
    return replace(degrees, expert_shard=expert_shard(degrees)) if framework == "megatron" and degrees.expert > 1 else degrees


def _in_buckets(formats: Formats, job: Job, degrees: Degrees, fill: Resolver) -> Formats:
    """Gradients that are views of DDP's buckets, or that the textbook holds all step long, have buffers of their own."""
    view = degrees.sharding == "ddp" and bool(job.framework.ddp and job.framework.ddp.gradient_as_bucket_view)
    return replace(formats, resident_gradients=True) if view or fill.framework == "textbook" or job.optimizer.in_backward else formats


def version_of(text: str | None) -> tuple[int, ...]:
    """Leading numbers of a version; empty when unknown."""
    numbers = []
    for part in (text or "").split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def builds_mask(framework: str, version: str | None) -> bool:
    """transformers 4.53 to 4.57 build a causal mask although none is passed (masking_utils.py: find_packed_sequence_indices)."""
    return framework == "huggingface" and (4, 53) <= version_of(version) < (5,)


def repeats_heads(framework: str, version: str | None) -> bool:
    """transformers before 4.54 copy keys and values to every head in sdpa (integrations/sdpa_attention.py, no enable_gqa)."""
    return framework == "huggingface" and () < version_of(version) < (4, 54)


def not_counted(job: Job, plan: Plan) -> tuple[str, ...]:
    """What the job states that this version does not count: the answer is then UNDECIDED, never silently wrong."""
    method, profile, out = job.method, profile_of(plan.profile), []
    if plan.architecture.network:
        out += _not_counted_of_operations(plan)
    elif plan.framework not in PROFILES:
        out.append(f"framework.name: {plan.framework} has no kernel profile in this version; figures are those of huggingface")
    if method.name not in (None, "pretrain", "sft"):
        out.append(f"method.name: {method.name} keeps more than one model or batch, which this version does not count")
    if method.reference not in (None, "none") or method.critic or method.teacher or method.reward:
        out.append("method: a second resident model is not counted in this version")
    if profile.blocks and plan.architecture.block not in profile.blocks:
        out.append(f"model: {plan.framework} has no kernels of the block {plan.architecture.block!r}; figures are partly huggingface's")
    if plan.offload_parameters or (plan.offload_activations and (plan.checkpointing != "full" or plan.reentrant)):
        out.append("offload: parameters, and activations that are no checkpoints, are counted as if they stayed on the GPU")
    layers = plan.compiled and plan.checkpointing in profile.compiled_layers and plan.architecture.block in profile.roles
    if (job.precision.compute == "float8" or job.precision.fp8) and not layers:
        out.append("precision: 8-bit products are counted as 16-bit ones")
    if plan.checkpointing == "memory-budget":
        out.append("checkpointing.mode: memory-budget is counted as none")
    own = plan.framework == "megatron"
    if job.checkpointing.modules and set(job.checkpointing.modules) != {"core_attn"} and not own:
        out.append("checkpointing.modules: only core_attn is counted")
    if (plan.compiled and not profile.compiled and not layers) or job.framework.cuda_graphs not in (None, "none"):
        out.append("framework: compiled kernels and CUDA graphs are not counted")
    if job.frozen or (job.evaluate.micro_batch_size or 0) > 0 or job.save.full_state_dict:
        out.append("frozen, evaluate and save are not counted")
    if job.lora and job.lora.method == "dora":
        out.append("lora.method: DoRA's norms of weights are not counted")
    if plan.lora and plan.lora.base_dtype == "int8":
        out.append("lora.base_dtype: products of 8-bit weights are counted as those of 4-bit ones")
    listed = own or profile.per_operation
    if plan.checkpointing == "selective" and plan.attention != "eager" and plan.profile != "textbook" and not listed:
        out.append("checkpointing.mode: selective recomputes only an eager attention core; a list of operations is counted as none")
    if plan.architecture.encoder and plan.degrees.pipeline > 1:
        out.append("parallelism.pipeline: what an encoder sends to the stages of a decoder is not counted")
    if plan.degrees.context > 1 or (plan.degrees.expert > 1 and not own):
        out.append("parallelism: buffers of context and expert parallelism are not counted")
    if own:
        out += _not_counted_of_megatron(job, plan)
    return tuple(out)


def _not_counted_of_operations(plan: Plan) -> list[str]:
    """What a list of operations does not say enough for."""
    out, degrees = [], plan.degrees
    if plan.checkpointing != "none":
        out.append("checkpointing.mode: which operations of a plain network are run again is not counted; trace the model instead")
    if plan.lora:
        out.append("lora: adapters of a plain network are not counted")
    if max(degrees.tensor, degrees.pipeline, degrees.context, degrees.expert) > 1:
        out.append("parallelism: a plain network is counted whole on each rank")
    return out


def _not_counted_of_megatron(job: Job, plan: Plan) -> list[str]:
    out: list[str] = []
    block, transformer = plan.architecture.block, job.model.transformer
    if not profile_of("megatron").models(block):
        out.append(f"model: Megatron-LM's own modules of the block {block!r} are not counted; figures are those of huggingface's")
    if transformer is not None and transformer.mtp_layers:
        out.append("model.transformer.mtp_layers: multi-token prediction is not counted")
    if plan.degrees.sharding not in ("none", "ddp", "zero1"):
        out.append(f"parallelism.sharding: buffers of Megatron-LM's {plan.degrees.sharding} are not counted")
    if plan.degrees.pipeline > 1 and plan.degrees.schedule == "zero-bubble":
        out.append("parallelism.pipeline_schedule: zero-bubble is counted as 1f1b")
    if plan.offload_optimizer:
        out.append("offload.optimizer: what a hybrid optimizer keeps on the GPU is not counted")
    return out
