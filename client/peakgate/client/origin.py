"""Where the fields of a job stand, when it was read from a launch and not written as a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from peakgate.client.errors import PeakgateError

if TYPE_CHECKING:
    from peakgate.v1.document import Plain

_Error = TypeVar("_Error", bound=PeakgateError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """`format`: the reader's name. `places`: path of a field -> `file:line flag`, or whose default it is. `warnings`: what contradicts,
    or could not be read; `unread`: what changes memory and has no field."""

    format: str
    places: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Plain]:
        """As it stands beside an answer."""
        return {"format": self.format, "sources": dict(self.places), "warnings": [*self.warnings], "unread": [*self.unread]}

    def without(self, *paths: str) -> Origin:
        """The same for a job of which these fields came from elsewhere."""
        return replace(self, places={path: place for path, place in self.places.items() if path not in paths})

    def place_of(self, path: str) -> str:
        """The place of a field, of the block around it, or of the first field inside it; empty when none is known."""
        plain = re.sub(r"\[\d+\]", "", path)
        whole = plain
        while plain:
            if plain in self.places:
                return self.places[plain]
            plain = plain.rpartition(".")[0]
        return next((place for each, place in self.places.items() if each.startswith(f"{whole}.")), "")


def placed(error: _Error, origin: Origin | None) -> _Error:
    """The error itself, with the place of each bad field behind what is wrong with it; once, however often it is called."""
    if origin is None or not error.fields:
        return error
    fields, message = [], error.message
    for path, description in error.fields:
        place = origin.place_of(path)
        told = description if not place or place in description else f"{description} ({place})"
        message = message if told in message else message.replace(description, told, 1)
        fields.append((path, told))
    error.fields, error.message, error.args = tuple(fields), message, (message,)
    return error


@contextmanager
def naming_places(origin: Origin | None) -> Iterator[None]:
    """An error that is raised inside names the places of its fields."""
    try:
        yield
    except PeakgateError as error:
        raise placed(error, origin) from error
