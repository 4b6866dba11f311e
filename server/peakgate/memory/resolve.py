"""From what a job states to a plan in which every field is decided, with every value that was filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.memory.adapters import formats_of_base, lora_of, optimizer_of, pins_inputs
from peakgate.memory.architecture import Architecture
from peakgate.memory.capacity import capability_of
from peakgate.memory.defaults import default_of
from peakgate.memory.dtypes import QUANTISED
from peakgate.memory.earlier import earlier_kernels, versions_of
from peakgate.memory.fill import Resolver
from peakgate.memory.frozen import read_frozen
from peakgate.memory.job import Fp8, Fsdp, Job, Megatron, Zero
from peakgate.memory.lengths import Lengths, lengths_of
from peakgate.memory.methods.decide import method_of, with_method
from peakgate.memory.not_counted import not_counted
from peakgate.memory.plan import Degrees, Formats, Plan
from peakgate.memory.profiles import EARLIER, profile_name, profile_of
from peakgate.memory.recipes import formats_of
from peakgate.memory.routed import BALANCED, expert_shard
from peakgate.memory.versions import asks_at_input, builds_mask, repeats_heads, saves_on_gpu

SEQUENCE_PARALLEL = "parallelism.sequence_parallel"
PARAM_GATHER = "precision.fp8.param_gather"
FUSED_IN_PLACE = "Transformer Engine's kernel, in place; with --cross-entropy-fusion-impl native add about 4 bytes a logit"
"""Megatron-LM's own tests: 1,838 MB with the native kernel, 1,427 MB unfused (tests/functional_tests/test_cases, golden values)."""

FUSION = "framework.megatron.gradient_accumulation_fusion"

NODE_GPUS = int(default_of("*", "node.gpus").value)
"""Hybrid sharding shards inside a node when no degree is stated (torch fsdp/_init_utils.py: _init_intra_and_inter_node_groups)."""


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
    assumed = [] if job.framework.name else [f"framework.name: {framework} ({row.source})"]
    fill = Resolver(framework, assumed, versions_of(framework, job.framework))
    formats = formats_of(job.precision, fill.text(job.precision.recipe, "precision.recipe"))
    lora = lora_of(job, fill, architecture, formats)
    degrees = _degrees(job, fill, world, framework)
    mode = fill.text(job.checkpointing.mode, "checkpointing.mode")
    attention = _implemented(fill.text(job.attention.implementation, "attention.implementation"), architecture, fill)
    masked = _masked(job, fill, architecture)
    fill.text(job.batch.sequence_length_is, "batch.sequence_length_is")
    lengths = _lengths(job, architecture, fill)
    profile = _profile(job, fill, architecture.block)
    plan = Plan(
        architecture=profile_of(profile).builds(architecture),
        micro_batch=job.batch.micro_batch_size or 0,
        sequence=lengths.sequence,
        target=lengths.target,
        image=lengths.image,
        patch=lengths.patch,
        accumulation=fill.whole(job.batch.gradient_accumulation_steps, "batch.gradient_accumulation_steps"),
        profile=profile,
        framework=framework,
        attention=attention,
        builds_mask=masked,
        repeats_heads=repeats_heads(framework, job.framework.version),
        dropout_attention=_dropout(job, architecture.attention_dropout, "attention", fill),
        dropout_hidden=_dropout(job, architecture.hidden_dropout, "hidden", fill),
        checkpointing=mode,
        reentrant=mode == "full" and fill.flag(job.checkpointing.reentrant, "checkpointing.reentrant"),
        formats=_in_buckets(formats_of_base(formats, lora), job, degrees, fill),
        lora=lora,
        degrees=degrees,
        optimizer=optimizer_of(job, fill, lora),
        implementation=fill.text(job.optimizer.implementation, "optimizer.implementation"),
        set_to_none=fill.flag(job.optimizer.set_to_none, "optimizer.set_to_none"),
        in_backward=fill.flag(job.optimizer.in_backward, "optimizer.in_backward"),
        loss=_loss(job, fill),
        keep_logits=fill.flag(job.loss.keep_logits, "loss.keep_logits"),
        further_graphs_permille=round(1000 * ((job.loss.create_graph_factor or 1) - 1)),
        earlier_kernels=earlier_kernels(fill.versions),
        pins_inputs=lora is not None and lora.base_dtype in QUANTISED and pins_inputs(job, fill),
        expandable_segments=fill.flag(job.framework.expandable_segments, "framework.expandable_segments"),
    )
    plan = with_method(_budgeted(job, _placed(replace(plan, recomputed=_wrapped(job, plan)), job)), job, fill)
    if framework == "megatron":
        plan = _with_megatron(plan, job, fill)
    return Resolved(plan=plan, assumptions=tuple(fill.assumptions), undecided=not_counted(job, plan))


def _budgeted(job: Job, plan: Plan) -> Plan:
    """A layer that is compiled by itself with a budget of 0 keeps its inputs alone, as a checkpoint does.

    torch/_functorch/partitioners.py, choose_saved_values_set; between 0 and 1 a knapsack over measured run times decides.
    """
    profile = profile_of(plan.profile)
    whole = profile.compiles_layers(replace(plan, checkpointing="full"))
    nothing = plan.checkpointing == "memory-budget" and job.checkpointing.budget == 0
    return replace(plan, checkpointing="full") if whole and nothing else plan


def _wrapped(job: Job, plan: Plan) -> frozenset[str]:
    """Modules that a checkpoint is wrapped around one by one (torch checkpoint_wrapper.py: apply_activation_checkpointing)."""
    profile, modules = profile_of(plan.profile), frozenset(job.checkpointing.modules)
    return modules if plan.checkpointing == "selective" and profile.transformers and modules <= set(profile.recomputed) else frozenset()


def _with_megatron(plan: Plan, job: Job, fill: Resolver) -> Plan:
    """Settings that only Megatron-LM has; its unfused attention is the only one without Transformer Engine (gpt_layer_specs.py)."""
    details = job.framework.megatron or Megatron()
    engine = fill.text(details.transformer_impl, "framework.megatron.transformer_impl") == "transformer_engine"
    modules = job.checkpointing.modules or ("core_attn",)
    return replace(
        plan,
        transformer_engine=engine,
        fp8=_fp8(job, fill),
        fp8_parameters=_in_8_bits(job) and fill.flag(job.precision.fp8.param_gather if job.precision.fp8 else None, PARAM_GATHER),
        attention=plan.attention if engine else "eager",
        fused_weight_gradients=plan.lora is None and fill.flag(details.gradient_accumulation_fusion, FUSION),
        vocabulary_multiple=profile_of("megatron").vocabulary_multiple,
        recomputed=frozenset(modules) if plan.checkpointing == "selective" else frozenset(),
    )


def _fp8(job: Job, fill: Resolver) -> str:
    """The recipe of Transformer Engine's 8-bit products; empty without any."""
    return fill.text(job.precision.fp8.recipe if job.precision.fp8 else None, "precision.fp8.recipe") if _in_8_bits(job) else ""


def _in_8_bits(job: Job) -> bool:
    return job.precision.compute == "float8" or job.precision.fp8 is not None


def _lengths(job: Job, architecture: Architecture, fill: Resolver) -> Lengths:
    """A decoder's sequence that is not stated is as long as the encoder's."""
    lengths = lengths_of(job, architecture)
    if architecture.encoder and not job.batch.target_length:
        fill.assumptions.append("batch.target_length: as long as the stated sequence")
    return lengths


def _masked(job: Job, fill: Resolver, architecture: Architecture) -> bool:
    """Whether attention reads a mask: of padding, which a batch that is not packed carries, or one that the framework builds unasked."""
    packed = fill.flag(job.batch.packed, "batch.packed")
    if job.attention.mask is None and not packed:
        fill.assumptions.append("attention.mask: padding (batch.packed is false)")
        return True
    mask = fill.text(job.attention.mask, "attention.mask")
    causal = architecture.traits.get("objective") not in ("plain", "contrastive")
    return not packed or mask == "padding" or (mask == "none" and causal and builds_mask(fill.framework, job.framework.version))


def _placed(plan: Plan, job: Job) -> Plan:
    """The plan with what is as stated or absent: details of checkpointing, DDP, FSDP and ZeRO, and what lies in the host's memory."""
    fsdp, zero = job.framework.fsdp or Fsdp(), job.framework.zero or Zero()
    return replace(
        plan,
        checkpoint_every=job.checkpointing.every or 1,
        checkpoint_layers=job.checkpointing.layers or 0,
        fused_kernels=frozenset(job.framework.fused_kernels),
        compiled=job.framework.compile or False,
        fsdp_version=fsdp.version or int(default_of(plan.framework, "framework.fsdp.version").value),
        float8_gather=_float8_gather(job, plan.framework),
        cuda_graphs=job.framework.cuda_graphs or "none",
        reshard_after_forward=_reshards(fsdp, plan),
        reduce_bucket_elements=zero.reduce_bucket_size or int(default_of(plan.framework, "framework.zero.reduce_bucket_size").value),
        overlap_comm=zero.overlap_comm or False,
        max_live_elements=zero.max_live_parameters or int(default_of(plan.framework, "framework.zero.max_live_parameters").value),
        node_gpus=job.node.gpus or NODE_GPUS,
        offload_optimizer=job.offload.optimizer not in (None, "none"),
        offload_parameters=job.offload.parameters not in (None, "none"),
        offload_activations=job.offload.activations not in (None, "none"),
        frozen=read_frozen(job.frozen),
        asks_at_input=asks_at_input(plan.framework, job.framework.version),
        saves_whole=job.save.full_state_dict or False,
        saves_on_gpu=saves_on_gpu(plan.framework, job.framework.version),
    )


def _reshards(fsdp: Fsdp, plan: Plan) -> bool:
    """torchtitan keeps a pipeline's weights gathered (models/llama3/infra/parallelize.py, apply_fsdp: not pp_enabled)."""
    if fsdp.reshard_after_forward is not None:
        return fsdp.reshard_after_forward
    return plan.framework != "torchtitan" or plan.degrees.pipeline == 1


def _float8_gather(job: Job, framework: str) -> bool:
    """Weights gathered in 8 bits: stated, or the framework's choice for 8-bit products."""
    fp8 = job.precision.fp8 or Fp8()
    if fp8.param_gather is not None:
        return fp8.param_gather
    if fp8.recipe not in (None, "current"):  # torchao float8/config.py: enable_fsdp_float8_all_gather is for scales of whole tensors
        return False
    return job.precision.compute == "float8" and default_of(framework, "precision.fp8.param_gather").value == "true"


def _implemented(attention: str, architecture: Architecture, fill: Resolver) -> str:
    """What transformers runs when a model's class lacks an implementation (modeling_utils.py: falls back to eager)."""
    if fill.framework != "huggingface" or attention in architecture.implementations:
        return attention
    fill.assumptions.append(f"attention.implementation: eager (transformers has no {attention} attention for {architecture.block})")
    return "eager"


def _dropout(job: Job, of_config: float, which: str, fill: Resolver) -> float:
    stated: float | None = getattr(job.dropout, which)
    if stated is not None:
        return stated
    if of_config and not method_of(job).drops_out:
        fill.assumptions.append(f"dropout.{which}: 0 (TRL trainer/dpo_config.py and its like: disable_dropout=True)")
        return 0.0
    fill.assumptions.append(f"dropout.{which}: {of_config:g} (the model's config)")
    return of_config


def _profile(job: Job, fill: Resolver, block: str) -> str:
    """The kernel profile's name; that of an earlier version is an assumption of its own. A block may be none of the framework's modules."""
    name = profile_name(fill.framework, job.framework.version, block, capability_of(job))
    if name in EARLIER:
        fill.text(job.framework.version, "framework.version")
    return name if profile_of(name).models(block) else "huggingface"


def _loss(job: Job, fill: Resolver) -> str:
    """How the loss is computed: Megatron-LM's split the vocabulary, the fused one in place."""
    fused = job.framework.megatron is not None and job.framework.megatron.cross_entropy_fusion
    if fused and job.loss.implementation in (None, "vocab-parallel"):
        fill.assumptions.append(f"framework.megatron.cross_entropy_fusion: {FUSED_IN_PLACE}")
        return "in-place"
    if job.loss.implementation is None and "fused_linear_cross_entropy" in job.framework.fused_kernels:
        return "fused"
    stated = fill.text(job.loss.implementation, "loss.implementation")
    return {"fused": "in-place", "full": "vocab-parallel"}.get(stated, stated) if fill.framework == "megatron" else stated


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
        sequence_parallel=fill.flag(p.sequence_parallel, SEQUENCE_PARALLEL) if tensor > 1 else p.sequence_parallel or False,
        pipeline=pipeline,
        virtual_pipeline=p.virtual_pipeline or 1,
        schedule=p.pipeline_schedule or "1f1b",
        stage_layers=p.stage_layers,
        context=context,
        context_type=fill.text(p.context_type, "parallelism.context_type") if context > 1 else "all-gather",
        expert=p.expert or 1,
        imbalance_permille=round(BALANCED * (p.expert_imbalance or 1)),
    )
    degrees = replace(degrees, whole_experts=framework == "torchtitan")
    return replace(degrees, expert_shard=expert_shard(degrees)) if degrees.expert > 1 else degrees


def _in_buckets(formats: Formats, job: Job, degrees: Degrees, fill: Resolver) -> Formats:
    """Gradients that are views of DDP's buckets, or that the textbook holds all step long, have buffers of their own."""
    view = degrees.sharding == "ddp" and bool(job.framework.ddp and job.framework.ddp.gradient_as_bucket_view)
    return replace(formats, resident_gradients=True) if view or fill.framework == "textbook" or job.optimizer.in_backward else formats
