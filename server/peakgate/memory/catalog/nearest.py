"""The names closest to one that is not known, for an error that tells what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# Below half of the characters in common, a guess confuses more than it helps.
_LEAST_LIKENESS = 0.5


def nearest(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """At most `count` known names, best first: the shortest that go on where the word ends, then those spelt alike.

    Case does not matter. Empty when nothing is near.
    """
    by_lower = {name.lower(): name for name in known}
    lower = word.strip().lower()
    longer = sorted((name for name in by_lower if lower and name.startswith(lower)), key=lambda name: (len(name), name))
    alike = get_close_matches(lower, by_lower, n=count, cutoff=_LEAST_LIKENESS)
    return tuple(by_lower[name] for name in dict.fromkeys((*longer, *alike)))[:count]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence with the nearest names, or an empty text."""
    names = nearest(word, known)
    return f"did you mean {' or '.join(names)}?" if names else ""
