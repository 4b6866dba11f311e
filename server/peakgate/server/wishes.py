"""What a submitter wants of suggestions: what they may alter, what they must keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """`allow` holds words of ALLOWABLE, `keep` paths of the job; `pareto` asks for the front as well."""

    allow: frozenset[str] = frozenset()
    keep: tuple[str, ...] = ()
    pareto: bool = False

    def keeps(self, path: str) -> bool:
        """Whether no suggestion may change the field at `path`: a kept path holds all below it."""
        return any(path == kept or path.startswith(f"{kept}.") for kept in self.keep)


NO_WISHES = Wishes()
"""Of a request that says nothing: what alters nothing but memory and time may be suggested of every field."""
