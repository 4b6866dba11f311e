"""The model that a trainer names: an id of the hub as it is written, or a local folder with its config.json."""

from __future__ import annotations

from peakgate.readers.finetuners.values import say
from peakgate.readers.launch import Launch
from peakgate.readers.named_model import config_of
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading

LONGEST = 1000
"""Characters of a path."""


def state_model(stated: Stated | None, launch: Launch, reading: Reading, role: str = "model") -> None:
    """States the model of a role (`model`, `method.critic` …)."""
    if stated is None or isinstance(stated.value, bool | list) or not 0 < len(stated.text.strip()) <= LONGEST:
        return
    name = stated.text.strip()
    config = local_config(name, launch)
    if config:
        say(reading, f"{role}.hf_config", config, stated)
        reading.checkpoint = name if role == "model" else reading.checkpoint
    else:
        say(reading, f"{role}.preset", name, stated)


def local_config(name: str, launch: Launch) -> dict[str, object]:
    """The content of a folder's config.json; empty without one that can be read."""
    return config_of(name, launch.files) or {}


def model_words(reading: Reading) -> str:
    """What the model's name says of its family: the id, or a local config's model_type."""
    config = reading.get("model.hf_config")
    kind = config.get("model_type") if isinstance(config, dict) else None
    return str(kind or reading.get("model.preset") or "").lower()
