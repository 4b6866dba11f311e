"""Launches for tests of the readers of Megatron's family, made from words without a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from peakgate.readers.arguments import Word
from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch, Reader
from peakgate.readers.place import FLAG, LAUNCHER, Place
from peakgate.readers.reading import Reading
from peakgate.readers.settings import read_settings


def a_launch(command: str, *, world: int | None = None, files: Mapping[str, str] | None = None) -> Launch:
    """A launch of a program and its words on so many GPUs."""
    return launch_of(shlex.split(command), world=world, files=files)


def launch_of(words: list[str], *, world: int | None = None, files: Mapping[str, str] | None = None) -> Launch:
    """The same from words."""
    around = Reading()
    if world is not None:
        around.state("parallelism.world_size", world, Place(kind=LAUNCHER, key="--nproc-per-node"))
    return Launch(words=[Word(word, Place(kind=FLAG)) for word in words], around=around, files=GivenFiles(files or {}))


def a_config(text: str, name: str = "config.yaml") -> Launch:
    """A config file that stands by itself."""
    return Launch(config=read_settings(text, name), config_file=name)


def values(reading: Reading) -> dict[str, object]:
    """The fields without their places."""
    return {path: stated.value for path, stated in reading.fields.items()}


def read(reader: Reader, launch: Launch) -> Reading:
    """What a reader says of a launch that it recognises."""
    assert reader.recognises(launch)
    return reader.read(launch)
