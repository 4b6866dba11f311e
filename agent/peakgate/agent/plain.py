"""The agent's objects as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import IntFlag

from peakgate.v1.plain import Plain


def plain(value: object) -> Plain:
    """Data classes as objects, flags as lists of words, tuples as lists; anything else that JSON does not have as its text."""
    if isinstance(value, IntFlag):
        return [str(flag.name).lower() for flag in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(each) for each in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
