"""What a submitter wants of suggestions: what they may alter, what they must keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.choices import ALLOWABLE
from peakgate.memory.prediction import FieldError
from peakgate.server.errors import fields_error
from peakgate.server.fields import all_paths

HELD_BY: dict[str, str] = {"batch": "batch"}
"""Word of `allow` -> the path that holds everything it would let go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """`allow` holds words of ALLOWABLE, `keep` paths of the job; `pareto` asks for the front as well."""

    allow: frozenset[str] = frozenset()
    keep: tuple[str, ...] = ()
    pareto: bool = False

    def keeps(self, path: str) -> bool:
        """Whether no suggestion may change the field at `path`."""
        return bool(self.keeper(path))

    def keeper(self, path: str) -> str:
        """The kept path that holds the field at `path`: itself or a part it lies in. Empty: none."""
        return next((kept for kept in self.keep if path == kept or path.startswith(f"{kept}.")), "")


NO_WISHES = Wishes()
"""Of a request that says nothing: what alters nothing but memory and time may be suggested of every field."""


def wishes_of(allow: Iterable[str], keep: Iterable[str], *, pareto: bool) -> Wishes:
    """The wishes of a request. Raises FIELD_INVALID that names every unknown word and path, and both sides of a contradiction."""
    words, paths = tuple(allow), tuple(keep)
    problems = [FieldError(field="allow", description=_unknown(word, ALLOWABLE)) for word in words if word not in ALLOWABLE]
    problems += [FieldError(field="keep", description=_unknown(path, all_paths())) for path in paths if path not in all_paths()]
    for word in (word for word in words if HELD_BY.get(word) in paths):
        text = f"{word} lets suggestions change {HELD_BY[word]}, and keep: {HELD_BY[word]} forbids it; leave one of them out"
        problems.append(FieldError(field="allow", description=text))
    if problems:
        raise fields_error(tuple(problems))
    return Wishes(allow=frozenset(words), keep=paths, pareto=pareto)


def _unknown(word: str, known: Iterable[str]) -> str:
    names = tuple(known)
    advice = did_you_mean(word, names) or (f"known are {', '.join(names)}" if len(names) <= len(ALLOWABLE) else "")
    what = "word" if len(names) <= len(ALLOWABLE) else "field or part of the job"
    return f"{word[:100]!r} is no {what} that is known{advice and f'; {advice}'}"
