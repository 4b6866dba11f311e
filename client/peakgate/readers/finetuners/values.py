"""Single settings read without a raise: what cannot be read says nothing here, and a row of a table warns of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from peakgate.readers.convert import whole
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Value
from peakgate.readers.settings import Settings
from peakgate.readers.switches import truth

Lookup = Callable[[str], Stated | None]


def on(stated: Stated | None) -> bool:
    """Whether a switch is there and on."""
    return truth(stated) is True


def off(stated: Stated | None) -> bool:
    """Whether a switch is there and off."""
    return truth(stated) is False


def count(stated: Stated | None) -> int:
    """A whole number above 0, else 0."""
    try:
        return max(whole(stated), 0) if stated is not None else 0
    except ValueError:
        return 0


def amount(stated: Stated | None) -> float:
    """A number above 0 in any notation, else 0: shares, `1e-3`."""
    try:
        value = float(stated.text) if stated is not None and not isinstance(stated.value, bool | list) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return value if 0 < value < float("inf") else 0.0


def words(stated: Stated | None) -> list[str]:
    """The words of a list, or of a text with commas; brackets and quotes of a command line left away."""
    if stated is None or isinstance(stated.value, bool):
        return []
    parts = [str(each) for each in stated.value] if isinstance(stated.value, list) else stated.text.strip().strip("[]").split(",")
    return [word for part in parts if (word := part.strip().strip("'\"[],"))]


def say(reading: Reading, path: str, value: Value, stated: Stated) -> None:
    """States a field at the place of a setting."""
    reading.state(path, value, stated.place)


def say_or_default(reading: Reading, path: str, value: Value, source: Stated | None, whose: str) -> None:
    """States a field at the place of a setting, or as the default that it is without one."""
    if source is not None:
        say(reading, path, value, source)
    else:
        reading.default(path, value, whose)


def not_counted(names: Iterable[str], settings: Settings, reading: Reading) -> None:
    """Settings that change memory in a way that no field says: noted where they, or any key below them, are there and not off."""
    sections = {path.partition(".")[0] for path in settings.leaves if "." in path}
    for name in names:
        stated = settings(name)
        if stated is None and name in sections:
            stated = next(iter(settings.under(name).leaves.values()), None)
            if stated is not None and not off(settings(f"{name}.enabled")):
                reading.cannot_say(name, stated.place)
        elif stated is not None and not _empty(stated):
            reading.cannot_say(f"{name}: {stated.text[:60]}", stated.place)


def numbers_only(names: Iterable[str], settings: Lookup, reading: Reading) -> None:
    """Settings from which other numbers are made, warned of where they are no numbers: a variable that nobody sets, a blank."""
    for name in names:
        stated = settings(name)
        if stated is not None and not count(stated) and stated.text.strip().lower() not in ("0", "-1", "auto", "none", "null"):
            reading.warnings.append(f"{name}: {stated.text[:60]!r} ({stated.place}) is no number: what follows from it is not read")


def _empty(stated: Stated) -> bool:
    return off(stated) or stated.text.strip().lower() in ("", "0", "0.0", "none", "null", "[]", "{}")
