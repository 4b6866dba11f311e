"""Suggestions as edits of the launch that a job was read from."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from peakgate.client.errors import InputError
from peakgate.client.source import LaunchText
from peakgate.readers.edits import Scalar, diff
from peakgate.readers.write_back import Written, write_back
from peakgate.v1.plain import plain_value
from peakgate.v1.prediction_pb2 import Suggestion

if TYPE_CHECKING:
    from rich.console import Console


def written(suggestion: Suggestion, launch: LaunchText) -> Written:
    """The launch with the suggestion in it; no file is touched."""
    return write_back(launch.reading, changes_of(suggestion), launch.files, launch.command)


def changes_of(suggestion: Suggestion) -> dict[str, Scalar]:
    """The fields that the suggestion changes, as a launch would have their values, in the order of their names: a map has none."""
    return {path: cast("Scalar", _whole(plain_value(suggestion.changes[path]))) for path in sorted(suggestion.changes)}


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value == int(value) else value


def diff_of(found: Written) -> str:
    """What changes in every file, and what has no place in the launch."""
    parts = [diff(before, after, file) for file, (before, after) in found.texts.items()]
    return "\n".join([*(part for part in parts if part), *(f"# not in the launch: {each}" for each in found.unsaid)])


def show_edits(suggestions: Iterable[Suggestion], launch: LaunchText) -> list[Written]:
    """Notes in each suggestion how the launch would change; the launches themselves, in the order of the suggestions."""
    found = []
    for suggestion in suggestions:
        found.append(written(suggestion, launch))
        suggestion.diff = diff_of(found[-1])
    return found


def write_edits(found: Sequence[Written], number: int) -> list[str]:
    """Writes the suggestion of a number, from 1. Raises InputError."""
    if not 0 < number <= len(found):
        raise InputError(f"--write {number}: there are {len(found)} suggestions with a launch to write to")
    return write(found[number - 1])


def print_backups(console: Console, backups: Iterable[str], unsaid: Iterable[str]) -> None:
    """Where the files as they were lie now, and what has to be set elsewhere."""
    console.print(f"\n  Written; as it was: {', '.join(backups)}", soft_wrap=True, markup=False)
    for each in unsaid:
        console.print(f"  Not in the launch, set it yourself: {each}", soft_wrap=True, markup=False)


def write(found: Written) -> list[str]:
    """Writes the edits to their files, each with a backup beside it; the names of the backups. Raises InputError."""
    files: Mapping[str, tuple[str, str]] = {file: texts for file, texts in found.texts.items() if texts[0] != texts[1]}
    if not files or "" in files:
        raise InputError("there is no file to write: the job was read from a command line, or nothing changes in its files")
    backups = []
    for file, (before, after) in files.items():
        path = Path(file).expanduser()
        try:
            if path.read_text(encoding="utf-8-sig") != before:
                raise InputError(f"{file} was changed meanwhile")
            backup = _free(path)
            shutil.copy2(path, backup)
            path.write_text(after, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}", reason="FILE_UNWRITABLE") from error
        backups.append(str(backup))
    return backups


def _free(path: Path) -> Path:
    """A name for the backup that no file has."""
    names = (path.with_name(f"{path.name}.bak{number or ''}") for number in range(1000))
    return next(name for name in names if not name.exists())
