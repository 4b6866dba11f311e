"""LLaMA-Factory: a YAML file by itself or behind `llamafactory-cli train`, flags of it, `src/train.py`.

Sources (LLaMA-Factory at ff6d4d12, August 2026): hparams/{model,finetuning,data}_args.py (names and defaults), hparams/parser.py (`a.yaml
key=value` overrides, packing of stage pt), launcher.py (torchrun over NPROC_PER_NODE GPUs).
"""

from __future__ import annotations

import re

from peakgate.readers.arguments import overrides_of
from peakgate.readers.finetuners.launched import (
    before_dashes,
    config_path,
    flags_of,
    state_data_parallel,
    state_world_of_variables,
    world_of,
)
from peakgate.readers.finetuners.values import on
from peakgate.readers.launch import Launch
from peakgate.readers.llamafactory_parts import PARTS
from peakgate.readers.llamafactory_v1 import VERBS, is_second, read_second
from peakgate.readers.own_defaults import state_own
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

COMMANDS = ("llamafactory-cli", "lmf", "llamafactory.cli")
SCRIPTS = ("src/train_bash.py", "llamafactory/launcher.py", "train_bash.py", "llamafactory.launcher")
COMMON = "src/train.py"
"""A script that many projects have: its arguments, or its folder, tell whose it is."""
MARKS = ("stage", "finetuning_type", "cutoff_len")


class LlamaFactory:
    """LLaMA-Factory's configs and commands."""

    name = "llamafactory"

    def recognises(self, launch: Launch) -> bool:
        """By the program, or by the keys of a config."""
        if not launch.words:
            return _marked(launch.config) or is_second(launch.config)
        if launch.path.endswith(COMMON) and not re.search("llama.?factory", launch.path, re.IGNORECASE):
            settings = self._settings(launch, Reading())
            return _marked(settings) or is_second(settings)
        return _is_command(launch) or launch.path.endswith((*SCRIPTS, COMMON))

    def read(self, launch: Launch) -> Reading:
        """The config with what the command says over it."""
        reading = Reading()
        settings = self._settings(launch, reading)
        first = settings.first("model_name_or_path", "model") or next(iter(settings.leaves.values()), None)
        if first is not None:
            reading.state("framework.name", "huggingface", first.place)
        if _is_command(launch):
            state_world_of_variables(launch, reading)
            _allocator(launch, reading)
        if is_second(settings):
            read_second(settings, launch, _verb(launch), reading)
            state_own("llama-factory 1", settings, launch, reading)
            return reading
        for part in PARTS:
            part(settings, launch, reading)
        state_own("llama-factory", settings, launch, reading)
        state_data_parallel(settings, launch, reading)
        return reading

    def _settings(self, launch: Launch, reading: Reading) -> Settings:
        if not launch.words:
            return launch.config
        path = config_path(launch, (".yaml", ".yml", ".json"))
        if path and [word.text for word in launch.words[1:3]].count(path):
            config = launch.settings_of(path, reading)
            return config.merged(overrides_of(before_dashes(launch))).merged(flags_of(launch))
        return flags_of(launch)


def _marked(config: Settings) -> bool:
    return config("model_name_or_path") is not None and any(config(mark) is not None for mark in MARKS)


def _is_command(launch: Launch) -> bool:
    return launch.program in COMMANDS and (_verb(launch) == "train" or _verb(launch) in VERBS)


def _verb(launch: Launch) -> str:
    return launch.words[1].text if launch.program in COMMANDS and len(launch.words) > 1 else ""


def _allocator(launch: Launch, reading: Reading) -> None:
    """The command's own torchrun asks for expandable segments (launcher.py: OPTIM_TORCH, on unless it is switched off)."""
    several = world_of(launch, reading) > 1 or on(launch.environment("FORCE_TORCHRUN"))
    plain = launch.environment("OPTIM_TORCH")
    if several and (plain is None or on(plain)):
        reading.default("framework.expandable_segments", True, "LLaMA-Factory (launcher.py: OPTIM_TORCH)")
