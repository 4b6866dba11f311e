"""Objects of the API as JSON. What one holds is not believed: whatever has another type than is looked for is not there. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Object = Mapping[str, object]


def at(value: object, *keys: str) -> object:
    """What stands at a path; None where nothing does."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mapping_at(value: object, *keys: str) -> Object:
    """A mapping, empty where there is none."""
    found = at(value, *keys)
    return found if isinstance(found, Mapping) else {}


def list_at(value: object, *keys: str) -> Sequence[object]:
    """A list, empty where there is none."""
    found = at(value, *keys)
    return found if isinstance(found, list | tuple) else ()


def mappings_at(value: object, *keys: str) -> list[Object]:
    """The members of a list, those that are no mappings as empty ones."""
    return [mapping_at(each) for each in list_at(value, *keys)]


def text_at(value: object, *keys: str) -> str:
    """A text, empty where there is none."""
    found = at(value, *keys)
    return found if isinstance(found, str) else ""
