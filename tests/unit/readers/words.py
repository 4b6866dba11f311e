"""Launches from plain words, for tests of one reader: variables in front, torchrun, tune run, composer and python peeled off."""

from __future__ import annotations

import re
import shlex

from peakgate.readers.files import Files, GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.place import FLAG, LAUNCHER, VARIABLE, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings

_TAKES_VALUE = (
    "nnodes",
    "nproc_per_node",
    "rdzv_backend",
    "rdzv_endpoint",
    "rdzv_id",
    "master_port",
    "n",
    "local_ranks_filter",
    "role",
    "tee",
)


def launch_of(command: str, files: Files | None = None) -> Launch:
    """The launch of a simple command."""
    words = [Stated(word, Place(kind=FLAG)) for word in shlex.split(command)]
    launch = Launch(files=files or GivenFiles())
    variables = Settings()
    while words and re.match(r"\w+=", words[0].text):
        name, _, value = words.pop(0).text.partition("=")
        variables.override(name, Stated(value, Place(kind=VARIABLE, key=name)))
    launch.environment = variables
    launchers: list[str] = []
    while words and words[0].text in ("torchrun", "tune", "composer", "python", "python3", "srun"):
        name = words.pop(0).text
        if name == "tune":
            words.pop(0)
        if name != "srun":
            words = _flags(words, launch.around)
        launchers += [name] if not name.startswith("python") else []
    launch.words, launch.launchers = words, launchers
    return launch


def _flags(words: list[Stated], around: Reading) -> list[Stated]:
    found: dict[str, int] = {}
    while words and words[0].text.startswith("-"):
        name, joined, value = words.pop(0).text.lstrip("-").replace("-", "_", 2).partition("=")
        if name == "m":
            break
        if not joined and name in _TAKES_VALUE:
            value = words.pop(0).text
        if value.isdigit():
            found[name] = int(value)
    each = found.get("nproc_per_node", found.get("n", 0))
    if each:
        count = each * found.get("nnodes", 1)
        for path, size in (("gpu.count", count), ("parallelism.world_size", count), ("node.gpus", each)):
            around.state(path, size, Place(kind=LAUNCHER, key="torchrun"))
    return words


def launch_of_file(name: str, text: str) -> Launch:
    """The launch of a config file that stands by itself."""
    return Launch(config=read_settings(text, name), config_file=name, files=GivenFiles({name: text}))


def document(reading: Reading) -> dict[str, object]:
    """Values by path."""
    return {path: stated.value for path, stated in reading.fields.items()}


__all__ = ["document", "launch_of", "launch_of_file"]
