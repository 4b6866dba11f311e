"""The model that a launch names: a local folder with a config.json, or a name as it is written."""

from __future__ import annotations

import json

from peakgate.readers.files import FileError, Files
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

PRESET, CONFIG = "model.preset", "model.hf_config"

NAMES = (
    "model_name_or_path",
    "pretrained_model_name_or_path",
    "model_id_or_path",
    "model_name",
    "model_id",
    "base_model",
    "base_model_name_or_path",
    "model_path",
    "model",
    "hf_model",
    "pretrained_model",
    "actor_model_name_or_path",
)
"""Common names of the argument, the surest first."""


def name_model(settings: Settings, files: Files, reading: Reading, names: tuple[str, ...] = NAMES) -> None:
    """States the model by the first name that is there, or the configuration of one that is trained from scratch."""
    stated = next((each for each in map(settings, names) if each is not None and isinstance(each.value, str)), None)
    if stated is None:
        _from_scratch(settings, files, reading)
        return
    state_model(stated, files, reading)


def state_model(stated: Stated, files: Files, reading: Reading) -> None:
    """States a model's name, or the config.json of the folder that it is."""
    if not name_config(stated, files, reading) and stated.text.strip():
        reading.state(PRESET, stated.text.strip(), stated.place)


def name_config(stated: Stated, files: Files, reading: Reading) -> bool:
    """States the config.json of the folder that a setting names, in the place of all that it said so far. Whether there is one."""
    config = config_of(stated.text, files)
    if config is None:
        return False
    reading.fields[CONFIG] = Stated(config, stated.place)
    reading.checkpoint = stated.text.removesuffix("config.json") or "."
    return True


def config_of(name: str, files: Files) -> dict[str, object] | None:
    """The content of a folder's config.json, or of a file of its own; None where there is none."""
    path = name if name.endswith(".json") else f"{name.rstrip('/')}/config.json" if files.is_folder(name) else ""
    if not path:
        return None
    try:
        config = json.loads(files.text(path))
    except (FileError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None


def _from_scratch(settings: Settings, files: Files, reading: Reading) -> None:
    """`--config_name`, or `--model_type` with `--config_overrides` (transformers examples/pytorch/language-modeling/run_clm.py)."""
    if (named := settings("config_name")) is not None:
        state_model(named, files, reading)
        return
    kind = settings("model_type")
    if kind is None or not isinstance(kind.value, str):
        return
    config: dict[str, object] = {"model_type": kind.text}
    overrides = settings("config_overrides")
    for pair in overrides.text.split(",")[:100] if overrides is not None else ():
        key, _, value = pair.partition("=")
        config[key.strip()] = _number(value.strip())
    reading.state(CONFIG, config, kind.place)


def _number(text: str) -> object:
    try:
        return json.loads(text.lower())
    except (ValueError, RecursionError):
        return text


def hidden_size(reading: Reading) -> int:
    """The model's width where its configuration is at hand; 0 otherwise."""
    config = reading.get(CONFIG)
    size = config.get("hidden_size", config.get("n_embd")) if isinstance(config, dict) else 0
    return size if isinstance(size, int) and 0 < size < 1 << 20 else 0
