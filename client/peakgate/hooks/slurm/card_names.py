"""The card that a scheduler's names may mean: a type of gres, helped by the features of its nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from peakgate.readers.launchers.gpu_names import gpus_named

_GIGABYTES = re.compile(r"(?<![\d.])(\d{2,3})\s*g(?:i?b)?$", re.IGNORECASE)
_OWN_SIZE = re.compile(r"-(\d{2,3})gb(?:/|$)")
_PROFILE = re.compile(r"\d+g\.\d+gb(\+me)?$", re.IGNORECASE)


def cards_meant(kind: str, features: Collection[str] = ()) -> tuple[str, ...]:
    """Names of the catalogue: one when it is clear, none when nothing is known by these words.

    A type that says nothing (a slice's profile, or none at all) takes the card that the features name.
    """
    found = gpus_named(kind)
    if not found:
        named = {name for feature in features for name in gpus_named(f"{feature}-{kind}" if _PROFILE.match(kind) else feature)}
        found = tuple(sorted(named)) if not kind or _PROFILE.match(kind) else ()
    return _of_size(found, features) if len(found) > 1 else found


def _of_size(names: Iterable[str], features: Collection[str]) -> tuple[str, ...]:
    """Those of the one size that a feature states, such as gpu80g; all of them where none or several do."""
    names = tuple(names)
    stated = {int(match[1]) for feature in features if (match := _GIGABYTES.search(feature))}
    held = [name for name in names if size_of(name) in stated]
    return tuple(held) if held and len({size_of(name) for name in held}) == 1 else names


def size_of(name: str) -> int:
    """Gigabytes in a name of the catalogue; 0: it states none."""
    match = _OWN_SIZE.search(name)
    return int(match[1]) if match else 0


def named_bytes(name: str) -> int:
    """The same in bytes, as it is compared with a card's memory."""
    return size_of(name) * 10**9
