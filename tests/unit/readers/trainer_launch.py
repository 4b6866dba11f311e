"""Launches of Trainer scripts from a command's words, for tests: what starts the script is peeled off by name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath

from peakgate.readers.arguments import Arguments, Word, arguments_of
from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.place import FLAG, LAUNCHER, Place, Stated
from peakgate.readers.reading import Reading

TAKE_NOTHING = ("use_fsdp", "use_deepspeed", "multi_gpu", "module", "m", "standalone")
GPUS = ("nproc_per_node", "num_gpus", "num_processes")


def a_launch(command: str, files: Mapping[str, str] | None = None, gpus: int = 0) -> Launch:
    """The launch of a command; `gpus` in all, unless the launcher says how many."""
    words = [Word(text, Place(kind=FLAG)) for text in shlex.split(command)]
    launchers, flags = [], {}
    while words and PurePosixPath(words[0].text).name in ("torchrun", "accelerate", "deepspeed", "python", "python3"):
        name = PurePosixPath(words[0].text).name
        words = words[2:] if name == "accelerate" else words[1:]
        own, words = _own(words)
        if not name.startswith("python"):
            launchers.append(name)
            flags[name] = arguments_of(own)
    return Launch(words=words, files=GivenFiles(files or {}), launchers=launchers, launcher_flags=flags, around=_around(flags, gpus))


def _own(words: list[Word]) -> tuple[list[Word], list[Word]]:
    """The launcher's flags, each with its value, and the rest."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        alone = "=" in words[at].text or words[at].text.lstrip("-") in TAKE_NOTHING
        at += 1 if alone else 2
    return words[:at], words[at:]


def _around(flags: Mapping[str, Arguments], gpus: int) -> Reading:
    around = Reading()
    for arguments in flags.values():
        for name in GPUS:
            gpus = int(stated.text) if (stated := arguments(name)) is not None and stated.text.isdigit() else gpus
    if gpus:
        around.fields["parallelism.world_size"] = Stated(gpus, Place(kind=LAUNCHER))
    return around
