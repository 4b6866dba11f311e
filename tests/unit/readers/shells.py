"""Helpers of the tests of shell and launchers."""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.shell.script import launches_of_command, launches_of_script


def texts(launch: Launch) -> list[str]:
    """The words of a launch."""
    return [word.text for word in launch.words]


def commands(script: str, files: Mapping[str, str] | None = None, name: str = "run.sh") -> list[list[str]]:
    """The words of all launches of a script."""
    return [texts(launch) for launch in launches(script, files, name)]


def launches(script: str, files: Mapping[str, str] | None = None, name: str = "run.sh") -> list[Launch]:
    """The launches of a script."""
    return list(launches_of_script(script, name, GivenFiles({name: script, **(files or {})})))


def started(command: str, files: Mapping[str, str] | None = None) -> Launch:
    """The only launch of a command line."""
    (launch,) = launches_of_command(command, GivenFiles(files or {}))
    return launch


def fields(launch: Launch) -> dict[str, object]:
    """What is said around a launch."""
    return {path: stated.value for path, stated in launch.around.fields.items()}
