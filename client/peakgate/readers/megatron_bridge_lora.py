"""Adapters of Megatron-Bridge, NeMo 2 and NeMo 1: low-rank pairs beside Megatron's joined matrices.

Sources: Megatron-Bridge src/megatron/bridge/peft/lora.py (LoRA: all four kinds of linear layers, dim 32, no dropout, the model's format);
NeMo 1 nemo/collections/nlp/parts/peft_config.py (LoraPEFTConfig).
"""

from __future__ import annotations

from peakgate.readers.convert import number, positive
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Row, apply
from peakgate.readers.settings import Settings

ROWS = (
    Row("dim", "lora.rank", positive),
    Row("adapter_dim", "lora.rank", positive),
    Row("dropout", "lora.dropout", number),
    Row("adapter_dropout", "lora.dropout", number),
)
RANK = 32
"""LoRA.dim; lora_tuning.adapter_dim."""

TARGETS = {
    "linear_qkv": "qkv_proj",
    "attention_qkv": "qkv_proj",
    "linear_proj": "o_proj",
    "attention_dense": "o_proj",
    "linear_fc1": "gate_up_proj",
    "mlp_fc1": "gate_up_proj",
    "linear_fc2": "down_proj",
    "mlp_fc2": "down_proj",
    "attention": "qkv_proj o_proj",
    "mlp": "gate_up_proj down_proj",
    "all": "qkv_proj o_proj gate_up_proj down_proj",
}
EVERY = frozenset({"qkv_proj", "o_proj", "gate_up_proj", "down_proj"})
FORMATS = {"megatron-bf16": "bfloat16", "megatron-fp16": "float16", "amp-bf16": "float32", "amp-fp16": "float32", "fp32": "float32"}


def read_lora(options: Options, stated: Settings, place: Place, *, on: bool, method: str) -> None:
    """States the adapters; `stated`: with a `peft` section of Bridge. The formats are the model's."""
    peft = stated.under("peft")
    kind = peft("_target_") or peft("name") or stated("peft")
    if kind is not None:
        text = kind.text.lower()
        on, method = on or "lora" in text or "dora" in text, "dora" if "dora" in text and "canonical" not in text else method
    if not on:
        return
    state_adapters(options, peft, place, method=method, every=("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"))


def state_adapters(options: Options, peft: Settings, place: Place, *, method: str, every: tuple[str, ...]) -> None:
    """`every`: the modules that are adapted when none are named."""
    reading = options.reading
    reading.state("lora.method", method, place)
    apply(ROWS, peft, reading)
    reading.default("lora.rank", RANK, options.whose)
    targets = peft("target_modules")
    names = _names(targets) if targets is not None else list(every)
    short = [name for each in names for name in TARGETS.get(each.rpartition(".")[2], each.rpartition(".")[2]).split()]
    where = targets.place if targets is not None else Place(kind=DEFAULT, key=options.whose)
    reading.state("lora.targets", ["all-linear"] if set(short) >= EVERY else list(dict.fromkeys(short)), where)
    if any("*" in each for each in names):
        reading.cannot_say("adapters of some layers", where)


def state_formats(options: Options) -> None:
    """Adapters and their frozen base are in the model's own format (lora_dtype: None)."""
    recipe = options.reading.get("precision.recipe")
    if "lora.method" in options.reading.fields and isinstance(recipe, str) and recipe in FORMATS:
        options.reading.default("lora.adapter_dtype", FORMATS[recipe], options.whose)


def _names(stated: Stated) -> list[str]:
    if isinstance(stated.value, list):
        return [str(each) for each in stated.value[:50]]
    return [part.strip(" '\"") for part in stated.text[:1000].strip("[]").split(",") if part.strip(" '\"")]
