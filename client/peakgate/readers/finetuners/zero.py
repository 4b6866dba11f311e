"""A DeepSpeed config file as the trainers around Hugging Face's modules use it: `auto`, and what is not there, follows the trainer.

Sources: accelerate utils/dataclasses.py, DeepSpeedPlugin.set_mixed_precision (bf16 and fp16 follow the trainer where the file is silent);
deepspeed runtime/engine.py (the module is cast whole, adapters with it).
"""

from __future__ import annotations

from peakgate.readers.deepspeed_config import read_config, state_optimizer, state_precision
from peakgate.readers.files import FileError
from peakgate.readers.finetuners.values import say
from peakgate.readers.launch import Launch
from peakgate.readers.place import JSON, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings

CASTS = "DeepSpeed (runtime/engine.py casts the module)"


def state_zero(settings: Settings, reading: Reading, *, half: str, adapters: bool) -> None:
    """States what a file says; `half`: bf16, fp16 or empty, the trainer's own. `adapters`: whether adapters alone are trained."""
    read_config(settings, reading)
    state_optimizer(settings, reading)
    source = settings("zero_optimization.stage") or next(iter(settings.leaves.values()), None)
    found = state_precision(settings, reading, autocast=half, place=source.place if source is not None else None)
    if not found and source is not None:
        say(reading, "precision.recipe", "fp32", source)
    if found and adapters:
        reading.default("lora.adapter_dtype", found, CASTS)


def zero_settings(stated: Stated, launch: Launch, reading: Reading, bundled: dict[str, Settings]) -> Settings | None:
    """The settings of a file that a trainer names, or of the one that it brings along; without either the answer is open."""
    path = stated.text.strip()
    try:
        if path.startswith("{"):
            return read_settings(path, stated.place.file or "deepspeed")
        return read_settings(launch.files.text(path), path)
    except FileError as error:
        known = bundled.get(path) or bundled.get(path.rsplit("/", 1)[-1])
        if known is None:
            reading.cannot_say(f"deepspeed config {path[:200]} {error}", stated.place)
            return None
        return Settings({key: Stated(each.value, Place(kind=JSON, key=key, file=path)) for key, each in known.leaves.items()})
