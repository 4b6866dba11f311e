"""Jobs that are read from a launch: a command, a script, a manifest, or a config file of a framework."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from peakgate.client.checkpoint import Counted, count_of
from peakgate.client.errors import InputError
from peakgate.client.named_files import job_of
from peakgate.client.origin import Origin, placed
from peakgate.client.source import LaunchText, Source
from peakgate.readers.files import Files, FolderFiles, LayeredFiles
from peakgate.readers.read import UnreadableError, read_command, read_file
from peakgate.readers.reading import Reading

MOST_UNREAD = 40
"""Sentences that go with a job: what has more is no launch of a training job."""

OWN_MODEL = "; a line `#PEAKGATE model.preset=NAME` or `#PEAKGATE model.hf_config=FOLDER` in it says what is trained"
HINTS = {
    ".py": "; for a program give the command that starts it, behind --: -- torchrun {path} …",
    **dict.fromkeys((".sh", ".bash", ".sbatch", ".slurm"), OWN_MODEL),
}
"""What to do with a file that no reader knows, by its ending."""

LONGEST_SENTENCE = 300
LONGEST_LABEL = 60


def launch_file(path: Path) -> Source:
    """The job of a launch file. What it names is looked for where the command runs, then beside the file. Raises InputError."""
    try:
        files = _files(path)
        return _source(str(path), LaunchText(reading=read_file(str(path), files), files=files), path.parent)
    except UnreadableError as error:
        raise InputError(_named(str(path), str(error)), reason="LAUNCH_UNKNOWN") from error


def _named(path: str, error: str) -> str:
    """The error with the file's name, and what to do with a program."""
    hint = next((hint.format(path=path) for ending, hint in HINTS.items() if path.endswith(ending)), "")
    return f"{error if path in error else f'{path}: {error}'}{hint}"


def launch_command(words: Sequence[str], files: Files | None = None) -> Source:
    """The job of a launch command; one that nothing can be read of holds the error. `files`: where those that it names lie, else here."""
    label = shlex.join(words)
    label = label if len(label) <= LONGEST_LABEL else f"{label[:LONGEST_LABEL]}…"
    files = files or FolderFiles(Path())
    try:
        return _source(label, LaunchText(reading=read_command(words, files), files=files, command=shlex.join(words)))
    except UnreadableError as error:
        return Source(label=label, job=InputError(str(error), reason="LAUNCH_UNKNOWN"))


def _files(path: Path) -> Files:
    here = FolderFiles(Path())
    return here if path.parent == Path() else LayeredFiles((here, FolderFiles(path.parent)))


def _source(label: str, launch: LaunchText, beside: Path = Path()) -> Source:
    reading = launch.reading
    reading.unread = [_short(each) for each in reading.unread[:MOST_UNREAD]]
    origin = Origin(
        format=reading.format,
        places={path: str(stated.place) for path, stated in reading.fields.items()},
        warnings=tuple(_short(each) for each in reading.warnings),
        unread=tuple(reading.unread),
    )
    try:
        job, counted = job_of(reading.document(), Path()), _counted(reading, beside)
        return Source(label=label, job=job, origin=origin, counted=counted, launch=launch)
    except InputError as error:
        return Source(label=label, job=placed(error, origin), origin=origin)


def _counted(reading: Reading, beside: Path) -> Counted | None:
    """What the files hold of the checkpoint that is trained, which lies where the command runs or beside the launch file."""
    if not reading.checkpoint or reading.get("model.hf_config") is None:
        return None
    folders = (place / Path(reading.checkpoint).expanduser() for place in (Path(), beside))
    return next((counted for counted in map(count_of, folders) if counted is not None), None)


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST_SENTENCE else f"{sentence[:LONGEST_SENTENCE]}…"
