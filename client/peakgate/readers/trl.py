"""TRL: `trl sft|dpo|kto|grpo|reward …`, its scripts, and scripts like them, with --config files.

Sources: TRL 1.10 trainer/base_config.py (gradient_checkpointing and bf16 are on), model_config.py (lora_r=16, lora_dropout=0.05),
sft_config.py (loss_type), trainer/sft_trainer.py (adapters of a quantised base are bfloat16; under ZeRO-3 they have the base's format and
checkpoints are reentrant), cli/accelerate_config.py.
"""

from __future__ import annotations

import re

from peakgate.readers import accelerate
from peakgate.readers.huggingface import LIKELY, SURE, half, read_placement, state_cast_adapters
from peakgate.readers.launch import Launch
from peakgate.readers.named_model import NAMES, name_model
from peakgate.readers.not_training import trains
from peakgate.readers.own_defaults import state_own
from peakgate.readers.peft import Base, read_adapters
from peakgate.readers.place import DEFAULT, FLAG, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on
from peakgate.readers.trainer import read_arguments
from peakgate.readers.trainer_settings import settings_of
from peakgate.readers.trl_lengths import state_lengths
from peakgate.readers.trl_methods import STABLE, before, method_of, module_of, state_method

OFFICIAL = ("sft.py", "dpo.py", "kto.py", "orpo.py", "grpo.py", "reward.py", "reward_modeling.py", "rloo.py", "gkd.py", "ppo.py", "trl")
"""Scripts whose adapters are switched on by --use_peft alone (ModelConfig)."""

OFTEN = (*SURE, *LIKELY, "use_peft", "dataset_name", *NAMES, "config")

TRAINING = (*SURE, *LIKELY, "dataset_name", "dataset_mixture.datasets", "dataset_mixer", "learning_rate", "packing", "max_length")
"""One of which a file that stands by itself has beside the model."""

OTHER_COMMANDS = ("vllm-serve", "env", "skills", "chat")
"""Commands of TRL that train nothing."""

DEFAULTS_FROM = (0, 20)
"""TRL from this version on trains in bf16 and with checkpoints unless told otherwise."""

_OF_TRL = re.compile(r"trl[./]scripts[./]|examples/scripts/")
"""In the paths of TRL's own programs."""


class Trl:
    """Launches of TRL's trainers."""

    name = "trl"

    def recognises(self, launch: Launch) -> bool:
        """By the command, or by a method's name in the script's beside arguments of trainers."""
        settings = settings_of(launch, Reading())
        method = method_of(launch, settings)
        if _is_command(launch):
            return bool(method) and method not in OTHER_COMMANDS
        if not method or not trains(launch.program) or any(map(_is_override, launch.words[1:60])):
            return False
        return any(settings(name) is not None for name in (OFTEN if launch.words else TRAINING))

    def read(self, launch: Launch) -> Reading:
        """What the command, its file and accelerate's say."""
        reading = Reading()
        settings = settings_of(launch, reading)
        method, place = method_of(launch, settings), _place(launch)
        reading.default("framework.name", "huggingface", "TRL runs transformers' Trainer")
        name_model(settings, launch.files, reading, ("sft_model_path", *NAMES) if method == "ppo" else NAMES)
        read_arguments(settings, reading)
        state_lengths(method, settings, reading)
        _checkpoints(method, settings, reading)
        outside = accelerate.accelerate_settings(launch, reading, settings if _is_command(launch) else None)
        if _is_command(launch):
            accelerate.state_world(outside, reading)
        mixed = read_placement(settings, outside, launch, reading, bf16_by_default=before(settings) > DEFAULTS_FROM)
        explicit = launch.program in OFFICIAL or "trl" in launch.launchers or settings("use_peft") is not None
        base = read_adapters(settings, reading, dtype=half(mixed), explicit=explicit)
        _adapters(base, method, reading)
        state_method(method, settings, reading, place)
        _loss(settings, reading)
        if "vlm" in launch.program:
            reading.cannot_say("pictures among the tokens", place)
        if _is_command(launch) or _OF_TRL.search(launch.path):
            state_own(self.name, settings, launch, reading)
            if before(settings) <= DEFAULTS_FROM:
                state_own("trl before 0.20", settings, launch, reading)
        return reading


def _is_override(word: Stated) -> bool:
    """`policy.model_name=…`, of Hydra and OmegaConf: TRL's scripts take none."""
    return re.match(r"[+~]{0,2}\w+(\.\w+)+=", word.text[:200]) is not None


def _is_command(launch: Launch) -> bool:
    return launch.program == "trl" or "trl" in launch.launchers


def _place(launch: Launch) -> Place:
    """Where the method stands: the subcommand, the script's name or the file."""
    words = launch.arguments.positional[:1] if launch.program == "trl" else launch.words[:1]
    if not words:
        return Place(kind=FLAG, file=launch.config_file)
    return Place(kind=FLAG, key=words[0].text, file=words[0].place.file, line=words[0].place.line)


def _checkpoints(method: str, settings: Settings, reading: Reading) -> None:
    if before(settings) > DEFAULTS_FROM and settings("gradient_checkpointing") is None:
        reading.default("checkpointing.mode", "full", "TRL trainer/base_config.py: gradient_checkpointing=True")
    if reading.get("checkpointing.mode") == "full" and before(settings) > DEFAULTS_FROM:
        reading.default("checkpointing.reentrant", value=False, whose=f"{module_of(method)}_trainer.py: use_reentrant=False")
    if place := switched_on(settings, "activation_offloading"):
        reading.state("offload.activations", "cpu", place)


def _adapters(base: Base | None, method: str, reading: Reading) -> None:
    """Formats and dropout of TRL's adapters, and what ZeRO-3 changes for them."""
    if base is None:
        return
    rank = reading.fields.get("lora.rank")
    if rank is not None and rank.place.kind == DEFAULT:
        reading.fields.pop("lora.rank")
        reading.default("lora.rank", 16, "TRL trainer/model_config.py: lora_r=16")
    reading.default("lora.dropout", 0.05, "TRL trainer/model_config.py: lora_dropout=0.05")
    if base.place is not None:
        reading.default("lora.adapter_dtype", "bfloat16", f"{module_of(method)}_trainer.py: adapters of a quantised base")
        return
    state_cast_adapters(reading)
    reentrant = reading.fields.get("checkpointing.reentrant")
    checkpointed = reading.get("checkpointing.mode") == "full"
    forced = method in STABLE and reading.get("parallelism.sharding") == "zero3"
    if forced and checkpointed and (reentrant is None or reentrant.place.kind == DEFAULT):
        reading.fields.pop("checkpointing.reentrant", None)
        reading.default("checkpointing.reentrant", value=True, whose=f"{module_of(method)}_trainer.py: adapters under ZeRO-3")


def _loss(settings: Settings, reading: Reading) -> None:
    """A loss that is asked for. Which one it is otherwise depends on the version, from 1.7 on without whole logits: it is left open."""
    stated = settings("loss_type")
    if stated is not None and reading.get("method.name") == "sft" and reading.get("loss.implementation") is None:
        reading.state("loss.implementation", "chunked" if "chunked" in stated.text else "full", stated.place)
