"""A launch from a plain command or a config file, for tests of single readers; launchers without flags of their own are left away."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from peakgate.readers.files import FolderFiles, GivenFiles
from peakgate.readers.launch import Launch, Reader
from peakgate.readers.place import Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings

LAUNCHERS = (["accelerate", "launch"], ["python3"], ["python"], ["torchrun"], ["deepspeed"], ["-m"], ["--module"])


def launch_of(command: str, files: dict[str, str] | Path | None = None) -> Launch:
    """A launch whose launchers have no flags of their own."""
    words, variables = shlex.split(command.replace("\\\n", " ")), Settings()
    while words and (match := re.match(r"([A-Z_]+)=(.*)$", words[0])):
        variables.override(match[1], Stated(match[2], Place(kind="variable", key=match[1])))
        words = words[1:]
    while heads := [head for head in LAUNCHERS if words[: len(head)] == head]:
        words = words[len(heads[0]) :]
    opened = FolderFiles(files) if isinstance(files, Path) else GivenFiles(files or {})
    return Launch(words=[Stated(word, Place(kind="flag")) for word in words], files=opened, environment=variables)


def config_of(text: str, name: str = "config.yaml", files: dict[str, str] | Path | None = None) -> Launch:
    """A config file by itself."""
    opened = FolderFiles(files) if isinstance(files, Path) else GivenFiles(files or {})
    return Launch(config=read_settings(text, name), config_file=name, files=opened)


def case_of(folder: Path) -> Launch:
    """A case of tests/golden/launches."""
    if (folder / "command").exists():
        return launch_of((folder / "command").read_text(), folder)
    name = (folder / "file").read_text().strip()
    return config_of((folder / name).read_text(), name, folder)


def read_with(reader: Reader, launch: Launch) -> Reading:
    """What a reader makes of a launch that it recognises."""
    assert reader.recognises(launch)
    return reader.read(launch)
