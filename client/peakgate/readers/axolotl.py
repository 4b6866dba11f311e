"""Axolotl: a YAML file by itself, or behind `axolotl train`, `-m axolotl.cli.train` and the older `scripts/finetune.py`; flags win over it.

Sources (axolotl at 067b021c, July 2026): utils/schemas/*.py (keys and defaults), utils/config/__init__.py (resolve_dtype,
normalize_config), loaders/model.py, core/builders/{base,rl}.py, cli/config.py (a flag `--a.b` or `--a__b` is the key b of a).
"""

from __future__ import annotations

from peakgate.readers.axolotl_parts import PARTS
from peakgate.readers.finetuners.launched import config_path, flags_of, state_data_parallel, state_world_behind_dashes
from peakgate.readers.launch import Launch
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

PROGRAMS = ("axolotl.cli.train", "axolotl.cli.finetune")
MARKS = ("micro_batch_size", "sequence_len", "adapter", "sample_packing", "datasets", "pretraining_dataset")
CLI = "Axolotl's command (utils/__init__.py: set_pytorch_cuda_alloc_conf)"


class Axolotl:
    """Axolotl's configs and commands."""

    name = "axolotl"

    def recognises(self, launch: Launch) -> bool:
        """By the program, or by the keys of a config."""
        if launch.words:
            return _is_command(launch) or launch.program in PROGRAMS or launch.path.endswith("scripts/finetune.py")
        return launch.config("base_model") is not None and any(launch.config.has(mark) for mark in MARKS)

    def read(self, launch: Launch) -> Reading:
        """The config with the flags over it."""
        reading = Reading()
        settings = self._settings(launch, reading)
        reading.state("framework.name", "huggingface", _whose(settings, launch))
        for part in PARTS:
            part(settings, launch, reading)
        if _is_command(launch):
            reading.default("framework.expandable_segments", True, CLI)
            state_world_behind_dashes(launch, reading)
        state_own(self.name, settings, launch, reading)
        if not _is_command(launch):  # which starts accelerate itself
            state_data_parallel(settings, launch, reading)
        return reading

    def _settings(self, launch: Launch, reading: Reading) -> Settings:
        if not launch.words:
            return launch.config
        path = config_path(launch, (".yml", ".yaml"))
        config = launch.settings_of(path, reading) if path else launch.config
        return config.merged(flags_of(launch))


def _is_command(launch: Launch) -> bool:
    verbs = [word.text for word in launch.words[1:2]]
    return launch.program == "axolotl" and verbs == ["train"]


def _whose(settings: Settings, launch: Launch) -> Place:
    """Where it stands that this is a job of Hugging Face's trainer."""
    stated: Stated | None = settings("base_model")
    return stated.place if stated is not None else launch.words[0].place if launch.words else Place(kind=DEFAULT, key="Axolotl")
