"""Launches of the trainers around Hugging Face's modules, from a command or the text of a config file."""

from __future__ import annotations

from peakgate.readers.files import GivenFiles
from peakgate.readers.read import read_command, read_file
from peakgate.readers.reading import Reading


def command(text: str, files: dict[str, str] | None = None) -> Reading:
    """What a command says."""
    return read_command(text, GivenFiles(files or {}))


def config(text: str, files: dict[str, str] | None = None) -> Reading:
    """What a config file says by itself."""
    return read_file("config.yaml", GivenFiles({"config.yaml": text, **(files or {})}))
