"""Low-rank adapters and quantised bases by the names that scripts give them.

Sources: peft tuners/lora/config.py and tuners_utils.py (autocast_adapter_dtype); TRL 1.10 trainer/model_config.py; peft
examples/sft/utils.py and train.py (use_peft_lora, use_4bit_quantization, use_nested_quant); artidoro/qlora qlora.py (bits, double_quant);
transformers utils/quantization_config.py: BitsAndBytesConfig.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakgate.readers.convert import number, one_of, positive, whole
from peakgate.readers.place import Place, Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth

SWITCHES = (
    "use_peft",
    "use_lora",
    "use_peft_lora",
    "lora",
    "lora_enable",
    "enable_lora",
    "peft",
    "use_qlora",
    "qlora",
    "q_lora",
    "lora_tuning",
)
RANKS = ("lora_r", "lora_rank", "peft_lora_r", "lora_dim", "lora_config.r", "peft_config.r")
TARGETS = (
    "lora_target_modules",
    "lora_modules",
    "target_modules",
    "lora_target",
    "lora_config.target_modules",
    "peft_config.target_modules",
)
DROPOUTS = ("lora_dropout", "peft_lora_dropout", "lora_config.lora_dropout", "peft_config.lora_dropout")
HINTS = (*RANKS, "lora_alpha", "peft_lora_alpha", "lora_target_modules", "lora_target")

IN_4_BITS = ("load_in_4bit", "use_4bit_quantization", "use_4bit", "load_4bit", "use_qlora", "qlora", "q_lora")
IN_8_BITS = ("load_in_8bit", "use_8bit_quantization", "use_8bit", "load_8bit", "use_8bit_qunatization")
KINDS = ("bnb_4bit_quant_type", "quant_type", "bnb_quant_type")
DOUBLE = ("bnb_4bit_use_double_quant", "use_bnb_nested_quant", "use_nested_quant", "double_quant", "use_double_quant")
FORMATS = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}
NOTHING = ("none", "null", "default", "auto")
ALL_LINEAR = ("all-linear", "all_linear", "all")


@dataclass(frozen=True, slots=True)
class Base:
    """The format that the frozen base is stored in, empty when it is as the model is loaded."""

    dtype: str = ""
    place: Place | None = None


def read_adapters(settings: Settings, reading: Reading, *, dtype: str, explicit: bool = False) -> Base | None:
    """States the adapters; None without any. `explicit`: only a switch makes them (TRL), otherwise their rank does as well.
    `dtype`: the 16-bit format that the model is loaded in."""
    place = _on(settings, explicit=explicit)
    base = base_of(settings)
    if place is None:
        return None
    _rank(settings, reading, place)
    for key in DROPOUTS:
        apply([Row(key, "lora.dropout", number)], settings, reading)
    _targets(settings, reading)
    if dora := switched_on(settings, "use_dora", "dora", "lora_config.use_dora"):
        reading.state("lora.method", "dora", dora)
    _base(settings, base, dtype, place, reading)
    apply([Row("adapter_dtype", "lora.adapter_dtype", one_of(FORMATS))], settings, reading)
    _beyond(settings, reading)
    return base


def _targets(settings: Settings, reading: Reading) -> None:
    targets = settings.first(*TARGETS)
    if targets is not None and (names := names_of(targets)):
        reading.state("lora.targets", list(names), targets.place)
    elif targets is not None and targets.text.strip(" []").lower() not in ("", *NOTHING):
        reading.cannot_say("adapted layers by a pattern", targets.place)


def _base(settings: Settings, base: Base, dtype: str, place: Place, reading: Reading) -> None:
    """The base's own format, or the one that the model is loaded in; `place`: of what makes the adapters."""
    if base.place is not None:
        reading.state("lora.base_dtype", base.dtype, base.place)
        if (double := switched_on(settings, *DOUBLE)) and base.dtype != "int8":
            reading.state("lora.double_quant", value=True, place=double)
    elif dtype:
        stated = settings("dtype")
        reading.state("lora.base_dtype", dtype, stated.place if stated is not None else place)


def _on(settings: Settings, *, explicit: bool) -> Place | None:
    if place := switched_on(settings, *SWITCHES):
        return place
    stated = settings.first("peft_method", "finetuning_type", "peft_type")
    if stated is not None and stated.text.lower() in ("lora", "qlora", "dora"):
        return stated.place
    if (
        explicit
        or any(truth(settings(name)) is False for name in set(SWITCHES).difference(IN_4_BITS))
        or switched_on(settings, "full_finetune")
    ):
        return None
    rank = settings.first(*HINTS)
    bits = _bits(settings)
    if rank is not None and not _is_zero(rank):
        return rank.place
    return bits.place if bits is not None else None


def _is_zero(stated: Stated) -> bool:
    try:
        return whole(stated) <= 0
    except ValueError:
        return False


def _bits(settings: Settings) -> Stated | None:
    """qlora.py's `--bits 4`, which trains adapters unless --full_finetune."""
    stated = settings("bits")
    return stated if stated is not None and stated.text in ("4", "8") else None


def base_of(settings: Settings) -> Base:
    """The quantised format of the base."""
    bits = _bits(settings)
    if place := switched_on(settings, *IN_4_BITS) or (bits.place if bits is not None and bits.text == "4" else None):
        kind = settings.first(*KINDS)
        return Base("int4" if kind is not None and kind.text.lower() == "fp4" else "nf4", place)
    if place := switched_on(settings, *IN_8_BITS) or (bits.place if bits is not None else None):
        return Base("int8", place)
    stated = settings.first("load_precision", "quantization")
    word = stated.text.lower() if stated is not None else ""
    kinds = {"4bit": "nf4", "nf4": "nf4", "fp4": "int4", "8bit": "int8", "int8": "int8", "int4": "nf4", "4": "nf4", "8": "int8"}
    return Base(kinds[word], stated.place) if stated is not None and word in kinds else Base()


def _rank(settings: Settings, reading: Reading, place: Place) -> None:
    rank = settings.first(*RANKS)
    if rank is not None:
        apply([Row(key, "lora.rank", positive) for key in RANKS if settings(key) is rank], settings, reading)
    else:
        reading.default(
            "lora.rank", 64 if _bits(settings) else 8, "peft tuners/lora/config.py: r=8" if not _bits(settings) else "qlora.py: lora_r=64"
        )
    if reading.get("lora.rank") is None:
        reading.warnings.append(f"lora.rank: adapters without a rank ({place})")


def names_of(stated: Stated) -> tuple[str, ...]:
    """Names of layers from a list, or from words with commas or spaces between them; a pattern is none."""
    value = stated.value
    words = [str(each) for each in value] if isinstance(value, list) else [stated.text]
    names = [each for word in words for each in re.split(r"[,\s\[\]\"']+", word.strip()) if each and each.lower() not in NOTHING]
    if any(each.lower() in ALL_LINEAR for each in names):
        return ("all-linear",)
    plain = all(re.fullmatch(r"[\w.\-]{1,80}", each) for each in names)
    return tuple(dict.fromkeys(names))[:200] if plain else ()


def _beyond(settings: Settings, reading: Reading) -> None:
    saved = settings.first("lora_modules_to_save", "modules_to_save", "additional_target", "lora_config.modules_to_save")
    if saved is not None and names_of(saved):
        reading.cannot_say("modules that are trained whole beside the adapters", saved.place)
    further = settings.first("lora_target_parameters", "target_parameters")
    if further is not None and names_of(further):
        reading.cannot_say("adapters of experts' parameters", further.place)
