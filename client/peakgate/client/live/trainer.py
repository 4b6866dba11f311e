"""A transformers Trainer, or one of TRL's, as a job: by the readers of their launches, which get the arguments as if they were a file's.

Sources: transformers training_args.py (to_dict, hf_deepspeed_config), trainer.py (model, model_wrapped, accelerator); accelerate state.py
(AcceleratorState: fsdp_plugin, deepspeed_plugin, mixed_precision, num_processes) and utils/dataclasses.py; TRL trainer/*_trainer.py.
"""

from __future__ import annotations

from pathlib import Path

from peakgate.client.live.models import model_settings, state_frozen, state_model, unwrapped
from peakgate.client.live.plain import attribute, mapping_of, place, plain, settings_of
from peakgate.client.live.surroundings import ranks, state_surroundings
from peakgate.readers.arguments import Arguments
from peakgate.readers.files import FolderFiles
from peakgate.readers.huggingface import HuggingFace
from peakgate.readers.launch import Launch
from peakgate.readers.place import DEFAULT, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.trainer_settings import ALIASES
from peakgate.readers.trl import Trl

ARGUMENTS = "TrainingArguments"
DEEPSPEED = ("args.hf_deepspeed_config.config", "accelerator.state.deepspeed_plugin.hf_ds_config.config")
PLUGIN = "accelerator.state.fsdp_plugin"
PLUGIN_FLAGS = {
    "fsdp_version": "fsdp_version",
    "sharding_strategy.name": "fsdp_sharding_strategy",
    "reshard_after_forward": "fsdp_reshard_after_forward",
    "activation_checkpointing": "fsdp_activation_checkpointing",
    "state_dict_type.name": "fsdp_state_dict_type",
    "limit_all_gathers": "fsdp_limit_all_gathers",
}
"""Attributes of FullyShardedDataParallelPlugin as flags of `accelerate launch`."""

LENGTH = "batch.sequence_length"
ASIDE = frozenset({"accelerator_config", "model_init_kwargs", "use_cpu", "no_cuda"})
"""Arguments that say nothing of the job: the process that asks may well have no GPU."""


def read_trainer(trainer: object, *, sequence_length: int = 0, gpu: str = "") -> Reading:
    """What the trainer says, each field with the attribute that it comes from. The arguments of the call win."""
    model, _ = unwrapped(attribute(trainer, "model"))
    launch = _launch(trainer, model)
    reader = Trl() if launch.words else HuggingFace()
    reading = Reading(format=reader.name)
    reading.merge(reader.read(launch))
    for path in [path for path in reading.fields if path.startswith("model.")]:
        del reading.fields[path]
    state_model(model, reading)
    state_frozen(model, reading)
    _without_limit(trainer, reading)
    if sequence_length:
        reading.fields[LENGTH] = Stated(sequence_length, place("sequence_length"))
    state_surroundings(reading, gpu=gpu, world_size=_world(trainer))
    return reading


def _launch(trainer: object, model: object) -> Launch:
    """The trainer as what would have started it; words only for TRL, whose method they name."""
    around = Reading()
    if _world(trainer) > 1:
        around.state("parallelism.world_size", _world(trainer), place("accelerator", "num_processes"))
    kind = _kind(trainer)
    return Launch(
        words=[Stated(f"{kind}.py", place(type(trainer).__name__))] if kind else [],
        config=_arguments(trainer).merged(model_settings(model)),
        files=FolderFiles(Path()),
        launcher_flags={"accelerate": Arguments(flags=_accelerator(trainer))},
        around=around,
    )


def _kind(trainer: object) -> str:
    """`sft` of SFTTrainer, `grpo` of a class that somebody derived from GRPOTrainer; empty for transformers' own."""
    for each in type(trainer).__mro__:
        if each.__module__.startswith("trl.") and each.__name__.endswith("Trainer"):
            return each.__name__.removesuffix("Trainer").lower()
    return ""


def _arguments(trainer: object) -> Settings:
    values = mapping_of(trainer, "args")
    values = {ALIASES.get(name, name): value for name, value in values.items() if name not in ASIDE}
    for path in DEEPSPEED:
        config = mapping_of(trainer, path)
        if config:
            values["deepspeed"] = config
            break
    return settings_of(values, ARGUMENTS)


def _accelerator(trainer: object) -> Settings:
    """What accelerate was told, as its flags."""
    out = Settings()
    where = place("accelerator", "state")
    mixed = plain(attribute(trainer, "accelerator.state.mixed_precision"))
    if isinstance(mixed, str) and mixed not in ("", "no"):
        out.leaves["mixed_precision"] = Stated(mixed, where)
    if attribute(trainer, PLUGIN) is None:
        return out
    out.leaves["use_fsdp"] = Stated(value=True, place=where)
    for path, flag in PLUGIN_FLAGS.items():
        value = plain(attribute(trainer, f"{PLUGIN}.{path}"))
        if value is not None:
            out.leaves[flag] = Stated(value, place("accelerator.state.fsdp_plugin", path.partition(".")[0]))
    offload = attribute(trainer, f"{PLUGIN}.cpu_offload")
    if offload is True or attribute(offload, "offload_params") or type(offload).__name__ == "CPUOffloadPolicy":
        out.leaves["fsdp_offload_params"] = Stated(value=True, place=place("accelerator.state.fsdp_plugin", "cpu_offload"))
    return out


def _world(trainer: object) -> int:
    for path in ("accelerator.num_processes", "args.world_size"):
        size = attribute(trainer, path)
        if isinstance(size, int) and size > 1:
            return size
    return ranks()


def _without_limit(trainer: object, reading: Reading) -> None:
    """A reader's default length is none where the arguments hold that there is no limit."""
    stated = reading.fields.get(LENGTH)
    arguments = attribute(trainer, "args")
    if stated is not None and stated.place.kind == DEFAULT and hasattr(arguments, "max_length"):
        del reading.fields[LENGTH]
