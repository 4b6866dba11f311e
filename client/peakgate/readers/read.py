"""From a command, a script, a manifest or a config file to what it says of a job."""

from __future__ import annotations

from collections.abc import Iterable

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
            return _first(launches_of_manifest(text, path, files), path)
        settings = Settings() if not text.strip() else read_settings(text, path)
    except FileError as error:
        raise UnreadableError(f"{path} {error}") from error
    return read_launch(Launch(config=settings, config_file=path, files=files))


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
    for reader in READERS:
        if reader.recognises(launch):
            reading = Reading(format=reader.name, program=launch.path)
            reading.merge(reader.read(launch))
            reading.merge(launch.around)
            reading.may_not_run = launch.may_not_run
            _take_own(launch, reading)
            warn_of_degrees(reading)
            return reading
    if broken := next(filter(is_broken, launch.own.warnings), ""):
        raise UnreadableError(broken)
    what = launch.path or launch.config_file or NO_COMMAND
    names = ", ".join(reader.name for reader in READERS)
    raise UnreadableError(f"{UNKNOWN}: {what} is none of {names}")


def _take_own(launch: Launch, reading: Reading) -> None:
    """What the submitter says itself wins, and settles what is doubtful about it."""
    own = launch.own
    reading.forget_other_models(own)
    reading.fields |= own.fields
    reading.own, reading.asides = frozenset(own.fields), own.asides
    if (named := own.fields.get(CONFIG)) is not None and isinstance(named.value, str):
        name_config(named, launch.files, reading)
    reading.warnings = [sentence for sentence in reading.warnings if sentence.partition(":")[0] not in own.fields]
