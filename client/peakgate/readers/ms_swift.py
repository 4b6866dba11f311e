"""ms-swift: `swift sft`, `swift pt`, `swift rlhf` and, over Megatron-LM, `megatron sft`, `megatron pt`, `megatron rlhf`.

Sources (ms-swift at 3602360a, August 2026): arguments/*.py and arguments/base_args/*.py (names and defaults), trainers/arguments.py,
cli/main.py (torchrun over NPROC_PER_NODE GPUs; `swift sft` is swift/cli/sft.py), megatron/arguments/*.py. `train_type` was `sft_type` in
version 2 and is `tuner_type` in version 4; `model` was `model_id_or_path`.
"""

from __future__ import annotations

from peakgate.readers.finetuners.launched import config_path, flags_of, state_world_of_variables
from peakgate.readers.launch import Launch
from peakgate.readers.ms_swift_megatron import MEGATRON_PARTS
from peakgate.readers.ms_swift_parts import PARTS, TYPES
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

VERBS = ("sft", "pt", "rlhf")
SCRIPTS = tuple(f"swift/cli/{verb}.py" for verb in VERBS) + tuple(f"swift/cli/_megatron/{verb}.py" for verb in VERBS)


class MsSwift:
    """ms-swift's commands."""

    name = "ms-swift"

    def recognises(self, launch: Launch) -> bool:
        """By the program and its verb."""
        return bool(launch.words) and _verb(launch) != ""

    def read(self, launch: Launch) -> Reading:
        """The flags, over a config file where there is one."""
        reading = Reading()
        settings, verb = _settings(launch, reading), _verb(launch)
        place = launch.words[0].place
        megatron = launch.program == "megatron" or "_megatron" in launch.path
        reading.state("framework.name", "megatron" if megatron else "huggingface", place)
        state_world_of_variables(launch, reading)
        if launch.program == "swift" and not launch.environment.leaves.keys() & {"NPROC_PER_NODE", "NNODES"}:
            reading.default("parallelism.world_size", 1, "ms-swift (cli/main.py: use_torchrun)")
        if verb == "pt":
            reading.state("method.name", "pretrain", place)
        elif verb == "rlhf":
            settings.leaves.setdefault("rlhf_type", Stated("dpo", Place(kind=DEFAULT, key="ms-swift (rlhf_args.py: rlhf_type)")))
        for part in MEGATRON_PARTS if megatron else PARTS:
            part(settings, launch, reading)
        return reading


def _settings(launch: Launch, reading: Reading) -> Settings:
    flags, path = flags_of(launch), config_path(launch, (".yaml", ".yml"))
    config = launch.settings_of(path, reading) if path and path in {each.text for each in launch.words[2:4]} else Settings()
    out = config.merged(flags)
    for today, earlier in TYPES.items():
        if out(today) is None and (stated := out.first(*earlier)) is not None:
            out.override(today, stated)
    return out


def _verb(launch: Launch) -> str:
    """sft, pt or rlhf; empty for anything else."""
    if launch.program in ("swift", "megatron"):
        found = launch.words[1].text if len(launch.words) > 1 else ""
        return found if found in VERBS else ""
    named = launch.path.replace(".", "/").removesuffix("/py")
    return next((verb for verb in VERBS if named.endswith((f"swift/cli/{verb}", f"swift/cli/_megatron/{verb}"))), "")
