"""Arguments of Trainer scripts from wherever they are given: flags over the YAML or JSON file that the command names.

Sources: transformers 5.24 hf_argparser.py (one positional .json or .yaml file in place of flags; --no_x for a switch that is on),
training_args.py (_VALID_DICT_FIELDS: JSON text as a value; older names of arguments); TRL 1.10 scripts/utils.py (TrlParser: --config).
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.readers.files import FileError
from peakgate.readers.launch import Launch
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.script_defaults import with_defaults
from peakgate.readers.settings import Settings, moved, read_settings

ALIASES = {
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "evaluation_strategy": "eval_strategy",
    "activation_checkpointing": "gradient_checkpointing",
    "activation_checkpointing_kwargs": "gradient_checkpointing_kwargs",
    "torch_dtype": "dtype",
    "use_liger": "use_liger_kernel",
    "attention_implementation": "attn_implementation",
    "attn_impl": "attn_implementation",
    "_attn_implementation": "attn_implementation",
    "model_init_kwargs.torch_dtype": "dtype",
    "model_init_kwargs.dtype": "dtype",
    "model_init_kwargs.attn_implementation": "attn_implementation",
    "deepspeed_config": "deepspeed",
    "ds_config": "deepspeed",
}
"""Earlier names, and other scripts' names, of one argument."""

KEPT = ("fsdp_config", "deepspeed", "gradient_checkpointing_kwargs", "liger_kernel_config", "model_init_kwargs", "accelerator_config")
"""Arguments that are mappings of their own; keys below any other name are the sections of somebody's file."""

OF_DEEPSPEED = (
    *("aio", "activation_checkpointing", "autotuning", "comms_logger", "compression_training", "curriculum_learning", "data_efficiency"),
    *("elasticity", "flops_profiler", "hybrid_engine", "monitor_config", "optimizer", "pipeline", "progressive_layer_drop", "scheduler"),
    *("sparse_attention", "tensorboard", "wandb", "zero_optimization"),
)
"""Sections of a DeepSpeed configuration, whose keys (`aio.block_size`) are no arguments."""

CONFIG_FLAGS = ("config", "config_path", "args_file", "yaml")
FILES = (".yaml", ".yml", ".json")


KEPT_AS = "trainer_settings"


def settings_of(launch: Launch, reading: Reading) -> Settings:
    """The arguments by today's names, found once a launch; what could not be read is a warning each time."""
    found = launch.kept.get(KEPT_AS)
    if not isinstance(found, _Found):
        found = launch.kept[KEPT_AS] = _found(launch)
    reading.merge(found.reading)
    return found.settings


def file_of(launch: Launch, stated: Stated, reading: Reading) -> Settings:
    """The settings of a file that decides; without it nothing is sure."""
    before = len(reading.warnings)
    settings = launch.settings_of(stated.text, reading)
    if len(reading.warnings) > before:
        reading.cannot_say(f"what {stated.text[:80]} says", stated.place)
    return settings


@dataclass(frozen=True, slots=True)
class _Found:
    settings: Settings
    reading: Reading


def _found(launch: Launch) -> _Found:
    out, reading = launch.config, Reading()
    for stated in _config_files(launch):
        out = out.merged(file_of(launch, stated, reading))
    own = _named(_flat(_unfolded(launch.arguments.flags)))
    return _Found(with_defaults(_named(_flat(out)).merged(own), launch.program), reading)


def _config_files(launch: Launch) -> list[Stated]:
    flags = launch.arguments.flags
    named = [stated for key in CONFIG_FLAGS if (stated := flags(key)) is not None]
    return [each for each in [*launch.arguments.positional[:4], *named] if each.text.lower().endswith(FILES)]


def _unfolded(flags: Settings) -> Settings:
    """Flags with JSON text as mappings, and --no_x as x switched off."""
    out = Settings()
    for name, stated in flags.leaves.items():
        if stated.text[:1] == "{":
            out = out.merged(_json(name, stated))
        elif name.startswith("no_") and stated.value is True:
            out.override(name.removeprefix("no_"), Stated(value=False, place=stated.place))
        else:
            out.override(name, stated)
    return out


def _json(name: str, stated: Stated) -> Settings:
    try:
        inner = moved(read_settings(stated.text, ""), stated.place)
    except FileError:
        return Settings({name: stated})
    return Settings({f"{name}.{key}": value for key, value in inner.leaves.items()})


def _flat(settings: Settings) -> Settings:
    """Sections of a file (`training.bf16`) by their keys alone, beside what is a mapping by itself."""
    out = Settings(dict(settings.leaves))
    kept = (*KEPT, *OF_DEEPSPEED) if settings.has("zero_optimization") or settings.has("train_micro_batch_size_per_gpu") else KEPT
    for path, stated in settings.leaves.items():
        head, _, key = path.rpartition(".")
        if head and head.split(".")[0] not in kept and ALIASES.get(head.split(".")[0]) not in kept:
            out.leaves.setdefault(key, stated)
    return out


def _named(settings: Settings) -> Settings:
    out = Settings(dict(settings.leaves))
    for path, stated in settings.leaves.items():
        head, dot, rest = path.partition(".")
        name = ALIASES.get(path) or (f"{ALIASES[head]}{dot}{rest}" if head in ALIASES else path)
        out.leaves.setdefault(name, stated)
    return out
