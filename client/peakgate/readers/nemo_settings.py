"""NeMo 1's `model` and `trainer` settings under the names of Megatron-LM's flags, with references (`${.hidden_size}`) resolved."""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.readers.megatron_flags import canonical
from peakgate.readers.place import Stated
from peakgate.readers.settings import Settings

STAGES = ("training", "fine_tuning", "peft")
"""Sections of the launcher's conf folder that train; their files stand below the section's name."""

RENAMED = {
    "activations_checkpoint_granularity": "recompute_granularity",
    "activations_checkpoint_method": "recompute_method",
    "activations_checkpoint_num_layers": "recompute_num_layers",
    "bias": "add_bias_linear",
    "qkv_bias": "add_qkv_bias",
    "fp8_params": "fp8_param_gather",
    "ub_tp_comm_overlap": "tp_comm_overlap",
    "use_flash_attention": "use_flash_attn",
    "override_vocab_size": "padded_vocab_size",
    "rotary_percentage": "rotary_percent",
    "enable_cuda_graph": "enable_cuda_graph",
    "fsdp": "use_torch_fsdp2",
}
ACTIVATIONS = {
    "swiglu": "swiglu_gate",
    "fast_swiglu": "swiglu_gate",
    "geglu": "gated_linear_unit",
    "fast_geglu": "gated_linear_unit",
    "reglu": "gated_linear_unit",
    "fast_reglu": "gated_linear_unit",
    "quick_geglu": "gated_linear_unit",
    "squared_relu": "squared_relu",
    "fast_squared_relu": "squared_relu",
}
OF_OPTIMIZER = {"overlap_grad_sync": "overlap_grad_reduce", "name": "optimizer"}
DISTRIBUTED = ("distributed_fused_adam", "mcore_distributed_optim")
PARTIAL = ("num_micro_batches_with_partial_activation_checkpoints", "activations_checkpoint_layers_per_pipeline")
SEQUENCE = ("data.train_ds.max_seq_length", "encoder_seq_length", "seq_length", "data.seq_length")
"""Where the sequence length stands, the first that is stated."""

_REFERENCE = re.compile(r"\$\{(\.*)([A-Za-z_][\w.]*)\}$")
_PRODUCT = re.compile(r"\$\{(multiply|divide_ceil|divide_floor|sum|add):\s*([^{},]+|\$\{[^{}]*\})\s*,\s*([^{},]+|\$\{[^{}]*\})\s*\}$")
DEEPEST = 6


def resolved(settings: Settings) -> tuple[Settings, str]:
    """The settings of one stage without its name in front, references replaced by what they name; and the stage."""
    stage = next((name for name in STAGES if settings.has(f"{name}.model") or settings.has(f"{name}.trainer")), "")
    inner = settings.under(stage) if stage else settings
    found: dict[str, Stated] = {}
    for path, stated in inner.leaves.items():
        found[path] = _follow(path, stated, inner, stage, 0) if isinstance(stated.value, str) and "${" in stated.value else stated
    return Settings(found), stage


def _follow(path: str, stated: Stated, inner: Settings, stage: str, depth: int) -> Stated:
    """What a reference comes to; null where it cannot be told."""
    unknown = replace(stated, value=None)
    if depth > DEEPEST or not isinstance(stated.value, str):
        return stated if depth <= DEEPEST else unknown
    text = stated.value.strip()
    if (match := _PRODUCT.match(text)) is not None:
        pair = [_follow(path, replace(stated, value=part.strip()), inner, stage, depth + 1).value for part in match.groups()[1:]]
        return replace(stated, value=_computed(match[1], pair))
    if (match := _REFERENCE.match(text)) is None:
        return unknown if text.startswith("${") and text.endswith("}") else stated
    target = _target(path, match[1], match[2], stage)
    named = inner(target)
    if named is None:
        return unknown
    return replace(_follow(target, named, inner, stage, depth + 1), place=stated.place)


def _target(path: str, dots: str, name: str, stage: str) -> str:
    """OmegaConf: one dot is the setting's own section, each further one the section around it."""
    if not dots:
        return name.removeprefix(f"{stage}.") if stage else name
    section = path.split(".")[: -len(dots)] if len(dots) <= path.count(".") + 1 else []
    return ".".join([*section, name])


def _computed(what: str, pair: list[object]) -> int | None:
    numbers = [int(str(each)) for each in pair if str(each).isdigit() and len(str(each)) < 10]
    if len(numbers) != 2:
        return None
    left, right = numbers
    if what == "multiply":
        return left * right
    if what in ("sum", "add"):
        return left + right
    return (-(-left // right) if what == "divide_ceil" else left // right) if right else None


def canonical_of(config: Settings) -> Settings:
    """The settings of Megatron's flags."""
    leaves: dict[str, Stated] = {}
    for section in ("encoder.", "decoder.", ""):
        for path, stated in config.under("model").leaves.items():
            name = path.removeprefix(section)
            if path.startswith(section) and "." not in name and stated.value is not None:
                leaves["decoder_num_layers" if section == "decoder." and name == "num_layers" else RENAMED.get(name, name)] = stated
    _sequences(leaves, config)
    _activation(leaves)
    _groups(leaves)
    _engine(leaves)
    _optimizer(leaves, config)
    _precision(leaves, config)
    _tokenizer(leaves, config)
    return canonical(Settings(leaves))


def _tokenizer(leaves: dict[str, Stated], config: Settings) -> None:
    """`library: megatron` has Megatron's types, `huggingface` an id as its type (NeMo nlp/modules/common/tokenizer_utils.py:
    get_nmt_tokenizer)."""
    library, named = config("model.tokenizer.library"), config("model.tokenizer.type")
    if library is None or named is None:
        return
    if library.text.lower() == "megatron":
        leaves["tokenizer_type"] = named
    elif library.text.lower() == "huggingface":
        leaves |= {"tokenizer_type": replace(library, value="HuggingFaceTokenizer"), "tokenizer_model": named}


def _sequences(leaves: dict[str, Stated], config: Settings) -> None:
    stated = config.first(*(f"model.{path}" for path in SEQUENCE))
    leaves.pop("encoder_seq_length", None)
    if stated is not None:
        leaves["seq_length"] = stated
    for name in ("micro_batch_size", "global_batch_size"):
        tuned = config(f"model.data.train_ds.{name}")
        if tuned is not None and name not in leaves:
            leaves[name] = tuned
    target = config.first("model.data.seq_length_dec", "model.decoder_seq_length")
    if target is not None:
        leaves["decoder_seq_length"] = target


def _activation(leaves: dict[str, Stated]) -> None:
    """NeMo takes ffn_hidden_size as it stands, so its gate is not --swiglu, which also chooses a width."""
    stated = leaves.pop("activation", None)
    name = ACTIVATIONS.get(stated.text.strip().lower().replace("-", "_")) if stated is not None else None
    if stated is not None and name is not None:
        leaves["gated_linear_unit" if name == "swiglu_gate" else name] = replace(stated, value=True)


def _groups(leaves: dict[str, Stated]) -> None:
    groups = leaves.get("num_query_groups")
    if groups is not None:
        leaves["group_query_attention"] = replace(groups, value=True)


def _engine(leaves: dict[str, Stated]) -> None:
    """`transformer_engine: false`, without mcore_gpt, is NeMo's own layers; fp8 counts only beside `fp8: true`."""
    engine = leaves.pop("transformer_engine", None)
    if engine is not None:
        leaves["transformer_impl"] = replace(engine, value="transformer_engine" if engine.text.lower() == "true" else "local")
    fp8 = leaves.get("fp8")
    if fp8 is not None and fp8.text.lower() != "true":
        for name in ("fp8", "fp8_hybrid", "fp8_e4m3"):
            leaves.pop(name, None)


def _optimizer(leaves: dict[str, Stated], config: Settings) -> None:
    for name, target in OF_OPTIMIZER.items():
        stated = config(f"model.optim.{name}")
        if stated is not None:
            leaves[target] = stated
    kind = leaves.get("optimizer")
    if kind is not None and kind.text.strip().lower() in DISTRIBUTED:
        leaves["use_distributed_optimizer"] = replace(kind, value=True)
    partial = next((leaves[name] for name in PARTIAL if name in leaves and leaves[name].text not in ("0", "none", "null")), None)
    if partial is not None:
        leaves["partial_checkpoints"] = replace(partial, value=True)


def _precision(leaves: dict[str, Stated], config: Settings) -> None:
    stated = config("trainer.precision")
    word = stated.text.lower() if stated is not None else ""
    if stated is not None and word.startswith(("bf16", "16")):
        leaves["bf16" if word.startswith("bf16") else "fp16"] = replace(stated, value=True)
