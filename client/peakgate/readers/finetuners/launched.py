"""What the trainers' readers share: the config file and the flags behind a program, the GPUs, and how a format is put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from peakgate.readers.arguments import arguments_of
from peakgate.readers.finetuners.values import count
from peakgate.readers.launch import Launch
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import LAUNCHER, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

Part = Callable[[Settings, Launch, Reading], None]
"""What one part of a trainer's settings means; a format is a tuple of them, in order."""

WORLD = "parallelism.world_size"
MOST_WORDS = 20_000
"""Of a trainer's command: what a system call takes (2 MiB) holds few more."""


def before_dashes(launch: Launch) -> Sequence[Stated]:
    """The program's own words: those behind a bare `--` are its launcher's."""
    words = launch.words[1:MOST_WORDS]
    ends = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    return words[:ends]


def config_path(launch: Launch, endings: tuple[str, ...]) -> str:
    """The first word that ends as a config file does; empty without one."""
    return next((word.text for word in before_dashes(launch) if word.text.lower().endswith(endings) and not word.text.startswith("-")), "")


def flags_of(launch: Launch) -> Settings:
    """Flags as keys of the config: `--a.b` and `--a__b` are nested, `--no-a` is a switch that is off."""
    out = Settings()
    for key, stated in arguments_of(before_dashes(launch)).flags.leaves.items():
        name, value = key.replace("__", "."), stated.value
        if name.startswith("no_") and value is True:
            name, value = name.removeprefix("no_"), False
        out.override(name, Stated(value, stated.place))
    return out


def state_world_behind_dashes(launch: Launch, reading: Reading) -> None:
    """GPUs that a trainer's own launcher is given behind `--`, or by the trainer's `--num-processes` before it."""
    own = before_dashes(launch)
    start = 1 + len(own) + 1
    flags = arguments_of(launch.words[start : start + 200]).flags
    if not flags.leaves:
        flags = arguments_of(own).flags  # axolotl cli/utils/train.py: num_processes is handed on
    each = flags.first("nproc_per_node", "nproc-per-node")
    if each is not None and count(each):
        _world(each, count(each) * max(count(flags("nnodes")), 1), reading)
    elif (total := flags("num_processes")) is not None and count(total):
        _world(total, count(total), reading)


def state_world_of_variables(launch: Launch, reading: Reading) -> None:
    """GPUs of a command that starts torchrun itself, from NPROC_PER_NODE and NNODES (llamafactory launcher.py, swift cli/main.py)."""
    each = launch.environment("NPROC_PER_NODE")
    if each is not None and count(each):
        _world(each, count(each) * max(count(launch.environment("NNODES")), 1), reading)


def _world(stated: Stated, size: int, reading: Reading) -> None:
    if WORLD not in reading.fields:
        reading.state(WORLD, size, replace(stated.place, kind=LAUNCHER) if not stated.place.kind else stated.place)


def state_data_parallel(settings: Settings, launch: Launch, reading: Reading) -> None:
    """Copies of the model under torchrun, where nothing shards it; accelerate may have a config of its own in the submitter's home."""
    if "accelerate" not in launch.launchers and world_of(launch, reading) > 1:
        state_own("several ranks", settings, launch, reading)


def world_of(launch: Launch, reading: Reading) -> int:
    """GPUs in all where the launch says them, else 0."""
    known = (each.get(path) for path in (WORLD, "gpu.count") for each in (reading, launch.around))
    return next((value for value in known if isinstance(value, int) and not isinstance(value, bool) and value > 0), 0)
