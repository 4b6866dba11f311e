"""Switches of settings that may be stated or not."""

from __future__ import annotations

from peakgate.readers.convert import FALSE, TRUE
from peakgate.readers.place import Place, Stated
from peakgate.readers.settings import Settings


def truth(stated: Stated | None) -> bool | None:
    """Whether a switch is on; None where it is not stated, or is no switch."""
    word = stated.text.strip().lower() if stated is not None else "?"
    return True if word in TRUE else False if word in FALSE else None


def switched_on(settings: Settings, *names: str) -> Place | None:
    """The place of the first of several switches that is on."""
    return next((stated.place for name in names if (stated := settings(name)) is not None and truth(stated)), None)
