"""Low-rank adapters: which linear layers carry them, and what a quantised base changes."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.architecture import Architecture
from peakgate.memory.dtypes import QUANTISED
from peakgate.memory.fill import Resolver
from peakgate.memory.job import Job
from peakgate.memory.plan import Formats, LoraPlan
from peakgate.memory.profiles import profile_name, profile_of
from peakgate.memory.profiles.profile import Profile
from peakgate.memory.versions import version_of

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

LATENT_NAMES = {"q_a_proj": "q_a", "q_b_proj": "q_b", "kv_a_proj_with_mqa": "kv_a", "kv_b_proj": "kv_b"}
"""Those of multi-head latent attention (transformers models/deepseek_v3/modeling_deepseek_v3.py)."""

ALL_LINEAR = {"attention_mla": frozenset(LATENT_NAMES.values()), "moe_gated": frozenset({"shared_gate"})}
"""What single blocks add to peft's all-linear: every linear layer but the head (tuners/tuners_utils.py)."""

JOINED = ("gpt2", "neox", "phi3", "falcon", "textbook", "bloom", "mpt")
"""Attention blocks with one matrix for queries, keys and values."""

FUSED = {"q": "qkv", "k": "qkv", "v": "qkv", "gate": "gate_up", "up": "gate_up"}
"""Llama's names on blocks that join the matrices (contract: Llama's names on every block)."""


def lora_of(job: Job, fill: Resolver, architecture: Architecture, formats: Formats) -> LoraPlan | None:
    """The job's adapters with every field decided; None without any."""
    if job.lora is None:
        return None
    lora = job.lora
    base = lora.base_dtype or formats.parameters
    if not lora.base_dtype:
        fill.assumptions.append(f"lora.base_dtype: {base} (the recipe's parameters)")
    names = lora.targets or tuple(fill.text(None, "lora.targets").split(", "))
    adapter = fill.text(lora.adapter_dtype, "lora.adapter_dtype")
    profile = profile_of(profile_name(fill.framework, job.framework.version, architecture.block))
    return LoraPlan(
        rank=fill.whole(lora.rank, "lora.rank"),
        targets=targets_of(names, architecture, profile),
        dropout=lora.dropout or 0.0,
        base_dtype=base,
        double_quant=base in QUANTISED and (profile.double_quant or fill.flag(lora.double_quant, "lora.double_quant")),
        adapter_dtype=formats.parameters if adapter == "parameters" else adapter,
        dora=lora.method == "dora",
    )


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


def formats_of_base(formats: Formats, lora: LoraPlan | None) -> Formats:
    """Under adapters the weights are stored in the base's format; a recipe that computes in its parameters' format then computes in it."""
    if lora is None or lora.base_dtype in QUANTISED or lora.base_dtype == formats.parameters:
        return formats
    mixed = formats.autocast or formats.compute != formats.parameters
    return replace(formats, parameters=lora.base_dtype, compute=formats.compute if mixed else lora.base_dtype)


def pins_inputs(job: Job, fill: Resolver) -> bool:
    """bitsandbytes autograd/_functions.py, MatMul4Bit: `ctx.tensors = (A, B)` up to 0.42, (None, B) from 0.43 on.

    torchtune does not use it. MatMul8bitLt: `ctx.tensors = (CAt, subA, A)` in every version.
    """
    if job.lora is not None and job.lora.base_dtype == "int8":
        fill.assumptions.append("lora.base_dtype: no outlying columns (bitsandbytes' int8 threshold; what they take depends on the data)")
        return True
    return fill.framework != "torchtune" and version_of(fill.text(job.framework.bitsandbytes, "framework.bitsandbytes")) < (0, 43)


def optimizer_of(job: Job, fill: Resolver, lora: LoraPlan | None) -> str:
    """The optimizer's name; a framework may exchange it where the base is quantised (litgpt finetune/lora.py: bnb.optim.PagedAdamW)."""
    name = fill.text(job.optimizer.name, "optimizer.name")
    if lora is None or lora.base_dtype not in QUANTISED:
        return name
    exchanged = profile_of(profile_name(fill.framework, job.framework.version)).optimizers_of_4bit.get(name, name)
    if exchanged != name:
        fill.assumptions.append(f"optimizer.name: {exchanged} ({fill.framework} takes it where the base is quantised)")
    return exchanged
