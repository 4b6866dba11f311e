"""ms-swift: `swift sft`, `swift pt`, `swift rlhf` and, over Megatron-LM, `megatron sft`, `megatron pt`, `megatron rlhf`.

Sources (ms-swift at 3602360a, August 2026): arguments/*.py and arguments/base_args/*.py (names and defaults), trainers/arguments.py,
cli/main.py (torchrun over NPROC_PER_NODE GPUs; `swift sft` is swift/cli/sft.py), megatron/arguments/*.py. `train_type` was `sft_type` in
version 2 and is `tuner_type` in version 4; `model` was `model_id_or_path`.
"""

from __future__ import annotations

from peakgate.readers.finetuners.launched import config_path, flags_of, state_data_parallel, state_world_of_variables
from peakgate.readers.launch import Launch
from peakgate.readers.ms_swift_megatron import MEGATRON_PARTS
from peakgate.readers.ms_swift_parts import PARTS, TYPES
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

VERBS = ("sft", "pt", "rlhf")
SCRIPTS = tuple(f"swift/cli/{verb}.py" for verb in VERBS) + tuple(f"swift/cli/_megatron/{verb}.py" for verb in VERBS)


class MsSwift:
    """ms-swift's commands."""

    name = "ms-swift"

    def recognises(self, launch: Launch) -> bool:
        """By the program and its verb, or by the keys of a config."""
        return _verb(launch) != "" if launch.words else _is_config(launch.config)

    def read(self, launch: Launch) -> Reading:
        """The flags, over a config file where there is one."""
        reading = Reading()
        settings, verb = _settings(launch, reading), _verb(launch)
        place = launch.words[0].place if launch.words else settings.leaves["model"].place
        megatron = launch.program == "megatron" or "_megatron" in launch.path or (not launch.words and _is_megatron(settings))
        reading.state("framework.name", "megatron" if megatron else "huggingface", place)
        state_world_of_variables(launch, reading)
        if launch.program == "swift" and not launch.environment.leaves.keys() & {"NPROC_PER_NODE", "NNODES"}:
            reading.default("parallelism.world_size", 1, "ms-swift (cli/main.py: use_torchrun)")
        if verb == "pt":
            reading.state("method.name", "pretrain", place)
        elif verb == "rlhf" or settings("rlhf_type") is not None:
            settings.leaves.setdefault("rlhf_type", Stated("dpo", Place(kind=DEFAULT, key="ms-swift (rlhf_args.py: rlhf_type)")))
        _allocator(settings, reading)
        for part in MEGATRON_PARTS if megatron else PARTS:
            part(settings, launch, reading)
        state_own(f"{self.name} megatron" if megatron else self.name, settings, launch, reading)
        if not megatron:
            state_data_parallel(settings, launch, reading)
        return reading


def _settings(launch: Launch, reading: Reading) -> Settings:
    """Flags over the file behind `--config` or in the place of the first word; of a Ray job the section of its trainer."""
    flags, path = flags_of(launch), config_path(launch, (".yaml", ".yml", ".json"))
    named = flags("config")
    is_named = named is not None and (named.text == path or (isinstance(named.value, list) and path in named.value))
    is_first = bool(path) and path in {each.text for each in launch.words[2:3]}
    out = launch.config.merged(launch.settings_of(path, reading) if path and (is_named or is_first) else Settings()).merged(flags)
    out = out.merged(out.under("train"))
    for today, earlier in TYPES.items():
        if out(today) is None and (stated := out.first(*earlier)) is not None:
            out.override(today, stated)
    return out


def _is_config(config: Settings) -> bool:
    """A model and a set of data by ms-swift's names, beside a tuner or a method that other trainers call otherwise."""
    own = config.first("tuner_type", "train_type", "sft_type", "rlhf_type")
    return config("model") is not None and config("dataset") is not None and own is not None


def _is_megatron(settings: Settings) -> bool:
    return settings.first("micro_batch_size", "tensor_model_parallel_size", "global_batch_size") is not None


def _allocator(settings: Settings, reading: Reading) -> None:
    """The section ENV of a config is set as variables (swift/utils/utils.py: parse_args)."""
    stated = settings("ENV.PYTORCH_CUDA_ALLOC_CONF")
    if stated is not None and "expandable_segments:true" in stated.text.replace(" ", "").lower():
        reading.state("framework.expandable_segments", value=True, place=stated.place)


def _verb(launch: Launch) -> str:
    """sft, pt or rlhf; empty for anything else."""
    if launch.program in ("swift", "megatron"):
        found = launch.words[1].text if len(launch.words) > 1 else ""
        return found if found in VERBS else ""
    named = launch.path.replace(".", "/").removesuffix("/py")
    return next((verb for verb in VERBS if named.endswith((f"swift/cli/{verb}", f"swift/cli/_megatron/{verb}"))), "")
