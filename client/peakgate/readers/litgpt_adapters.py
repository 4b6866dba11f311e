"""LitGPT's adapters: switches of LoRA, and the base in four or eight bits.

Source: litgpt finetune/lora.py at 26857050 (setup's arguments and their defaults).
"""

from __future__ import annotations

from peakgate.readers import convert
from peakgate.readers.place import DEFAULT, LAUNCHER, Place
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

QUANTISED = {"bnb.nf4": "nf4", "bnb.nf4-dq": "nf4", "bnb.fp4": "nf4", "bnb.fp4-dq": "nf4", "bnb.int8-training": "int8"}
"""`--quantize` -> the base's format; fp4 packs its weights as nf4 does."""
ADAPTED = {
    "lora_query": ("q_proj", True),
    "lora_key": ("k_proj", False),
    "lora_value": ("v_proj", True),
    "lora_projection": ("o_proj", False),
    "lora_mlp": ("gate_proj up_proj down_proj", False),
    "lora_head": ("lm_head", False),
}
"""Switch -> names of what it adapts, and whether it is on when nothing is said."""

ADAPTERS = (Row("lora_r", "lora.rank", convert.positive), Row("lora_dropout", "lora.dropout", convert.number))


def adapters_of(settings: Settings, kind: str, reading: Reading) -> None:
    """States the adapters; what is neither LoRA nor all parameters is told."""
    if kind in ("adapter", "adapter_v2"):
        reading.cannot_say(f"the learned prompts of {kind}", Place(kind=LAUNCHER, key=f"litgpt finetune_{kind}"))
    quantised = settings("quantize")
    if kind != "lora":
        if quantised is not None:
            reading.cannot_say(f"a base in {quantised.text[:20]} without LoRA", quantised.place)
        return
    apply(ADAPTERS, settings, reading)
    reading.default("lora.rank", 8, "litgpt: lora_r = 8")
    reading.default("lora.dropout", 0.05, "litgpt: lora_dropout = 0.05")
    _targets(settings, reading)
    if quantised is not None:
        word = quantised.text.strip().lower()
        if word not in QUANTISED:
            reading.cannot_say(f"a base in {word[:20]}", quantised.place)
            return
        reading.state("lora.base_dtype", QUANTISED[word], quantised.place)
        if word.endswith("-dq"):
            reading.state("lora.double_quant", True, quantised.place)


def _targets(settings: Settings, reading: Reading) -> None:
    targets: list[str | int | float | bool] = []
    place = Place(kind=DEFAULT, key="litgpt: lora_query and lora_value")
    for switch, (names, otherwise) in ADAPTED.items():
        stated = settings(switch)
        try:
            on = convert.flag(stated) if stated is not None else otherwise
        except ValueError as error:
            reading.warnings.append(f"lora.targets: {switch} {error}")
            on = otherwise
        if on:
            targets += names.split()
        if stated is not None:
            place = stated.place
    if targets:
        reading.state("lora.targets", targets, place)
    else:
        reading.warnings.append(f"lora.targets: every layer is switched off ({place})")
