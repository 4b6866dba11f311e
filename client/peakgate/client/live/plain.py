"""Attributes of somebody else's objects as plain values, each with the place it is read from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from peakgate.readers.place import Place, Stated
from peakgate.readers.settings import Settings

PYTHON = "python"
"""The kind of place: an attribute of an object."""

DEEPEST = 12
MOST_ITEMS = 10_000


def place(owner: str, name: str = "") -> Place:
    """`TrainingArguments.bf16`."""
    return Place(kind=PYTHON, key=f"{owner}.{name}" if name else owner)


def plain(value: object, depth: int = 0) -> object:
    """Numbers, words, lists and mappings; an enumeration by its value, anything else (a dtype, a device) by its name."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return plain(value.value, depth)
    if isinstance(value, Mapping) and depth < DEEPEST:
        return {str(key): plain(each, depth + 1) for key, each in list(value.items())[:MOST_ITEMS]}
    if isinstance(value, list | tuple | set | frozenset) and depth < DEEPEST:
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [plain(each, depth + 1) for each in list(items)[:MOST_ITEMS]]
    return str(value).removeprefix("torch.")


def settings_of(values: Mapping[str, object], owner: str) -> Settings:
    """Settings by dotted path, as a file with these values would have them; what is None or empty is not stated."""
    out = Settings()
    for name, value in values.items():
        _add(out, str(name), plain(value), owner)
    return out


def _add(out: Settings, path: str, value: object, owner: str) -> None:
    if isinstance(value, Mapping):
        for key, each in value.items():
            _add(out, f"{path}.{key}", each, owner)
    elif value is not None and value != "" and value != []:
        out.leaves[path] = Stated(value, place(owner, path))


def attribute(subject: object, path: str) -> object:
    """An attribute behind dots; None where one is missing, or cannot be asked for."""
    for name in path.split("."):
        try:
            subject = getattr(subject, name, None)
        except Exception:  # noqa: BLE001 - a property of somebody else's class may raise anything
            return None
    return subject


def mapping_of(subject: object, path: str) -> dict[str, object]:
    """An attribute's mapping, or what its `to_dict` says; empty without either."""
    value = attribute(subject, path) if path else subject
    if not isinstance(value, Mapping) and callable(made := getattr(value, "to_dict", None)):
        value = made()
    return {str(key): each for key, each in value.items()} if isinstance(value, Mapping) else {}
