"""From a command, a script, a manifest or a config file to what it says of a job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from itertools import islice

from peakgate.readers.degrees import warn_of_degrees
from peakgate.readers.files import FileError, Files
from peakgate.readers.launch import Launch
from peakgate.readers.manifests.read import is_manifest, launches_of_manifest
from peakgate.readers.named_model import CONFIG, name_config
from peakgate.readers.reading import Reading
from peakgate.readers.registry import READERS
from peakgate.readers.settings import Settings, read_settings
from peakgate.readers.shell.script import is_script, launches_of_command, launches_of_script
from peakgate.readers.stated import StatedReader, is_broken

UNKNOWN = "no reader knows this launch"
NOTHING_STARTED, NO_COMMAND = "starts nothing", "an empty command"
TRAINS_NOTHING = "trains nothing"
MOST_LAUNCHES, MOST_FURTHER = 4, 16
"""Of a manifest that are read beside each other, and that are looked at behind the first: a review has to be answered in time."""


class UnreadableError(Exception):
    """A launch of which nothing can be read: what was tried, in words."""


def read_command(command: str | Iterable[str], files: Files) -> Reading:
    """What a launch command says: one text as a shell has it, or its words. Raises UnreadableError."""
    try:
        return _first(launches_of_command(command, files), "the command")
    except FileError as error:
        raise UnreadableError(f"the command {error}") from error


def read_file(path: str, files: Files) -> Reading:
    """What a script, a manifest or a config file says. Raises UnreadableError."""
    try:
        text = files.text(path)
        if is_script(path, text):
            return _first(launches_of_script(text, path, files), path)
        if is_manifest(text):
            return read_manifest(text, path, files)[0]
        settings = Settings() if not text.strip() else read_settings(text, path)
    except FileError as error:
        raise UnreadableError(f"{path} {error}") from error
    return read_launch(Launch(config=settings, config_file=path, files=files))


def read_manifest(text: str, path: str, files: Files, most: int = 1) -> list[Reading]:
    """What a manifest says: the first launch that a reader knows, then up to `most` in all that say something else and surely run in the
    same container too. Raises UnreadableError and FileError."""
    launches = launches_of_manifest(text, path, files)
    found = [_first(launches, path)]
    with contextlib.suppress(FileError):
        for launch in islice(launches, MOST_FURTHER) if most > 1 and found[0].container else ():
            if launch.container != found[0].container:
                break
            with contextlib.suppress(UnreadableError):
                _further(launch, found)
            if len(found) == most:
                break
    return found


def _further(launch: Launch, found: list[Reading]) -> None:
    reading = read_launch(launch)
    if launch.may_come_too_late or reading.format == StatedReader.name or reading.may_not_run:
        return
    if all(reading.document() != each.document() for each in found):
        found.append(reading)


def _first(launches: Iterable[Launch], path: str) -> Reading:
    """The first launch that a reader knows; the scripts of a job often do other things before they train."""
    tried: list[str] = []
    last: Reading | None = None
    for launch in launches:
        try:
            reading = read_launch(launch)
        except UnreadableError as error:
            tried.append(str(error))
            continue
        if reading.format != StatedReader.name:
            return reading
        last = last or reading
    if last is not None:
        return last
    raise UnreadableError("; ".join(dict.fromkeys(tried)) or f"{path} {NOTHING_STARTED}")


def read_launch(launch: Launch) -> Reading:
    """What a peeled launch says, by the first reader that knows it. Raises UnreadableError that says what was tried."""
    if why := launch.trains_nothing:
        raise UnreadableError(f"{launch.path} {TRAINS_NOTHING}: {why}")
    for reader in READERS:
        if reader.recognises(launch):
            reading = Reading(format=reader.name, program=launch.path, container=launch.container)
            reading.merge(reader.read(launch))
            reading.merge(launch.around)
            reading.may_not_run = launch.may_not_run
            _take_own(launch, reading)
            warn_of_degrees(reading)
            reading.may_not_run |= any(_is_another(each, reading) for each in launch.otherwise)
            return reading
    if broken := next(filter(is_broken, launch.own.warnings), ""):
        raise UnreadableError(broken)
    what = launch.path or launch.config_file or NO_COMMAND
    names = ", ".join(reader.name for reader in READERS)
    raise UnreadableError(f"{UNKNOWN}: {what} is none of {names}")


def _is_another(launch: Launch, reading: Reading) -> bool:
    """Whether a launch says something else than a reading of its like."""
    try:
        other = read_launch(launch)
    except UnreadableError:
        return True
    return other.document() != reading.document() or other.checkpoint != reading.checkpoint


def _take_own(launch: Launch, reading: Reading) -> None:
    """What the submitter says itself wins, and settles what is doubtful about it."""
    own = launch.own
    reading.forget_other_models(own)
    reading.fields |= own.fields
    reading.own, reading.asides = frozenset(own.fields), own.asides
    if (named := own.fields.get(CONFIG)) is not None and isinstance(named.value, str):
        name_config(named, launch.files, reading)
    reading.warnings = [sentence for sentence in reading.warnings if sentence.partition(":")[0] not in own.fields]
