"""verl: `python -m verl.trainer.main_ppo key=value …`, its fine-tuning trainers, and their YAML by itself.

Sources (verl at b178a3cd, January 2026): trainer/config/*.yaml and the groups that they compose (names and defaults),
workers/fsdp_workers.py, workers/actor/dp_actor.py, trainer/fsdp_sft_trainer.py, trainer/ppo/core_algos.py.
"""

from __future__ import annotations

import re

from peakgate.readers.arguments import overrides_of
from peakgate.readers.files import FileError
from peakgate.readers.finetuners.launched import before_dashes, flags_of
from peakgate.readers.launch import Launch
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings
from peakgate.readers.verl_rl import read_rl
from peakgate.readers.verl_sft import read_sft

RL = ("main_ppo", "main_dapo", "fully_async_main", "main_ppo_sync")
"""Last names of the entry points, in trainer/, experimental/ and recipe/."""
SFT = ("verl.trainer.fsdp_sft_trainer", "fsdp_sft_trainer.py", "verl.trainer.sft_trainer", "sft_trainer.py")

_OF_VERL = re.compile(r"((ppo|sft)\w*trainer\w*(\.ya?ml)?)?$")
"""Names of verl's own configs, or none."""


class Verl:
    """verl's trainers."""

    name = "verl"

    def recognises(self, launch: Launch) -> bool:
        """By the program, or by the sections of a config."""
        if launch.words:
            return launch.program.removesuffix(".py").rpartition(".")[2] in RL or (launch.program in SFT and _ours(launch))
        return launch.config.has("actor_rollout_ref") or (launch.config.has("model.partial_pretrain") and launch.config.has("data"))

    def read(self, launch: Launch) -> Reading:
        """The overrides over a config that stands in a file of the launch."""
        reading = Reading()
        settings = launch.config.merged(_file(launch)).merged(overrides_of(before_dashes(launch)))
        if launch.program in SFT or (not launch.words and not settings.has("actor_rollout_ref")):
            read_sft(settings, launch, reading, engine="fsdp_sft" not in launch.program and launch.words != ())
        else:
            read_rl(settings, launch, reading, megatron="megatron" in _config_name(launch))
        if _OF_VERL.match(_config_name(launch)) or not launch.words or _file(launch).leaves:
            state_own(f"{self.name} megatron" if reading.get("framework.name") == "megatron" else self.name, settings, launch, reading)
        return reading


def _ours(launch: Launch) -> bool:
    return launch.program.startswith("verl.") or "verl" in launch.path or launch.program == "fsdp_sft_trainer.py"


def _config_name(launch: Launch) -> str:
    flags = flags_of(launch)
    return _first(flags("config_name") or flags("cn"))


def _first(stated: Stated | None) -> str:
    """Of several words behind a flag only the first is its value; the others are overrides."""
    if stated is None:
        return ""
    return str(stated.value[0]) if isinstance(stated.value, list) and stated.value else stated.text


def _file(launch: Launch) -> Settings:
    """A config in a folder of the launch; the trainer's own is verl's defaults and lies elsewhere."""
    flags, name = flags_of(launch), _config_name(launch)
    folder = _first(flags("config_path") or flags("cp"))
    if not folder or not name:
        return Settings()
    path = f"{folder.rstrip('/')}/{name}" + ("" if name.endswith((".yaml", ".yml")) else ".yaml")
    try:
        return read_settings(launch.files.text(path), path)
    except FileError:
        return Settings()
