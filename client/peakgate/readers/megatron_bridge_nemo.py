"""NeMo 2's `nemo llm finetune --factory NAME`: what its factories have in common, and what each of them decides by itself.

Sources: NeMo nemo/collections/llm/recipes/finetune_default.py (default_finetune_recipe: batches, lengths), llama31_70b.py and its like
(finetune_recipe: peft_scheme="lora"; degrees and the adapters' rank are the factory's own).
"""

from __future__ import annotations

from peakgate.readers.launch import Launch
from peakgate.readers.megatron_bridge_settings import TOKENS
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

OWN = (
    "tp",
    "pp",
    "vp",
    "cp",
    "ep",
    "etp",
    "sp",
    "seq",
    "mbs",
    "gbs",
    "full",
    "selective",
    "modules",
    "uniform",
    "block",
    "ends",
    "first",
    "last",
)
"""Tokens of a recipe that a factory for fine-tuning decides in its own way."""

COMMON = {"data.micro_batch_size": 1, "data.global_batch_size": 128, "data.seq_length": 2048}
DEGREES = ("trainer.strategy.tensor_model_parallel_size", "trainer.strategy.pipeline_model_parallel_size")
ADAPTERS = ("peft.dim", "peft.target_modules")


def tunes(launch: Launch) -> bool:
    """Whether the command fine-tunes."""
    return launch.program == "nemo" and [word.text for word in launch.words[2:3]] == ["finetune"]


def adapts(launch: Launch, stated: Settings) -> bool:
    """Whether it trains adapters: it does unless it is told not to."""
    named = stated.first("peft", "peft_scheme")
    return tunes(launch) and (named is None or named.text.strip().lower() not in ("none", "null", ""))


def factory_settings(recipe: Settings) -> Settings:
    """A recipe's settings without those that a factory has of its own, and what all factories share."""
    dropped = {name for token in OWN for name, _ in TOKENS.get(token, ())}
    kept = {path: each for path, each in recipe.leaves.items() if path.rpartition(".")[2] not in dropped}
    place = Place(kind=DEFAULT, key="NeMo 2 (recipes/finetune_default.py)")
    return Settings(kept | {path: Stated(value, place) for path, value in COMMON.items()})


def warn_of_factory(launch: Launch, stated: Settings, place: Place, reading: Reading) -> None:
    """What a factory decides and the words do not say leaves the answer open."""
    needed = (*DEGREES, *ADAPTERS) if adapts(launch, stated) else DEGREES
    missing = [path.removeprefix("trainer.strategy.") for path in needed if stated(path) is None]
    if missing:
        reading.cannot_say(f"the factory's own {', '.join(missing)}", place)
