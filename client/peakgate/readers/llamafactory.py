"""LLaMA-Factory: a YAML file by itself or behind `llamafactory-cli train`, flags of it, `src/train.py`.

Sources (LLaMA-Factory at ff6d4d12, August 2026): hparams/{model,finetuning,data}_args.py (names and defaults), hparams/parser.py (`a.yaml
key=value` overrides, packing of stage pt), launcher.py (torchrun over NPROC_PER_NODE GPUs).
"""

from __future__ import annotations

from peakgate.readers.arguments import overrides_of
from peakgate.readers.finetuners.launched import before_dashes, config_path, flags_of, state_world_of_variables
from peakgate.readers.launch import Launch
from peakgate.readers.llamafactory_parts import PARTS
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

COMMANDS = ("llamafactory-cli", "lmf", "llamafactory.cli")
SCRIPTS = ("src/train.py", "src/train_bash.py", "llamafactory/launcher.py", "train_bash.py", "llamafactory.launcher")
MARKS = ("stage", "finetuning_type", "cutoff_len")


class LlamaFactory:
    """LLaMA-Factory's configs and commands."""

    name = "llamafactory"

    def recognises(self, launch: Launch) -> bool:
        """By the program, or by the keys of a config."""
        if not launch.words:
            return _marked(launch.config)
        return _is_command(launch) or launch.path.endswith(SCRIPTS)

    def read(self, launch: Launch) -> Reading:
        """The config with what the command says over it."""
        reading = Reading()
        settings = self._settings(launch, reading)
        first = settings("model_name_or_path") or next(iter(settings.leaves.values()), None)
        if first is not None:
            reading.state("framework.name", "huggingface", first.place)
        if _is_command(launch):
            state_world_of_variables(launch, reading)
        for part in PARTS:
            part(settings, launch, reading)
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
    return launch.program in COMMANDS and [word.text for word in launch.words[1:2]] == ["train"]
