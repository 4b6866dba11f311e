"""Which versions a cluster runs: a small table of names that every level refers to by number, and one bucket for all the others.

A version is news of a level only when it is in the table. What one user alone states in a job or two (a nightly build, a name that is made
up) never gets there: it widens the bounds of its own jobs, which the table does not know, and costs nobody else anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

NAMES = 64
"""Versions that are known at once. Pairs of torch and CUDA that are in use side by side on a cluster must all be among them, or the rest
stays in the bucket; a number takes three characters of a level's state, so that a thousand groups that met all of them stay under 1 MB."""
CANDIDATES = NAMES
"""Versions that are waiting for a second user: with fewer than are in use side by side each would push out the next."""
OWN_ROWS = 10
"""Rows after which a version is known though one user alone runs it: as many as make a group old enough to be judged by."""
KEPT_ROWS = 2000
"""Rows without a known version before its place may be taken: as long as its scores are in the pool."""
BUCKET = 0
"""Number of every version that is not known, and of none."""


@dataclass(slots=True)
class Known:
    """A version in the table; `row` is the newest that stated it, `user` whose alone it is, empty when it is everybody's."""

    number: int
    row: int
    user: str = ""


@dataclass(slots=True)
class Candidate:
    """A version in the bucket: who stated it first, in how many rows it was, and the newest of them."""

    user: str
    rows: int
    row: int


class Versions:
    """Names with their numbers, which are given once and never again."""

    def __init__(self) -> None:
        self._rows = 0
        self._newest = BUCKET
        self._known: dict[str, Known] = {}
        self._candidates: dict[str, Candidate] = {}

    @property
    def numbers(self) -> Mapping[str, int]:
        """Of every known version."""
        return {name: known.number for name, known in self._known.items()}

    def meet(self, version: str, *, user: str) -> int:
        """Takes the version that a row states; returns its number, BUCKET while it is not known."""
        self._rows += 1
        known = self._known.get(version)
        if known is not None:
            known.row, known.user = self._rows, known.user if known.user == user else ""
            return known.number
        return self._wait(version, user) if version else BUCKET

    def take(self, names: Iterable[str]) -> Mapping[str, int]:
        """Knows versions that were known elsewhere, as many as there is room for; returns the numbers of all."""
        for name in names:
            if name not in self._known and len(self._known) < NAMES:
                self._number(name)
        return self.numbers

    def _wait(self, version: str, user: str) -> int:
        """One of the bucket. Of an unknown user each row may be another's."""
        candidate = self._candidates.get(version)
        if candidate is None:
            self._make_room_for_a_candidate()
            self._candidates[version] = Candidate(user, 1, self._rows)
            return BUCKET
        candidate.rows, candidate.row = candidate.rows + 1, self._rows
        owner = user if user == candidate.user else ""
        if (owner and candidate.rows < OWN_ROWS) or not self._make_room(owner):
            return BUCKET
        del self._candidates[version]
        return self._number(version, owner)

    def _number(self, version: str, owner: str = "") -> int:
        self._newest += 1
        self._known[version] = Known(self._newest, self._rows, owner)
        return self._newest

    def _make_room(self, owner: str) -> bool:
        """Whether a version can be known: the one that was not seen for longest gives way when that is long ago, or, to one that is
        everybody's, the same of those that are one user's alone."""
        if len(self._known) < NAMES:
            return True
        names = sorted(self._known, key=lambda name: (self._known[name].row, name))
        is_long_ago = self._rows - self._known[names[0]].row >= KEPT_ROWS
        gives_way = names[0] if is_long_ago else next((name for name in names if self._known[name].user and not owner), None)
        if gives_way is None:
            return False
        del self._known[gives_way]
        return True

    def _make_room_for_a_candidate(self) -> None:
        """Of the user with the most: whoever makes up a name a job only pushes out their own."""
        if len(self._candidates) < CANDIDATES:
            return
        held = Counter(candidate.user for candidate in self._candidates.values())
        most = max(held.values())
        waiting = (name for name, candidate in self._candidates.items() if held[candidate.user] == most)
        del self._candidates[min(waiting, key=lambda name: self._candidates[name].row)]

    def state(self) -> list[object]:
        """Everything, as JSON can hold it."""
        known = sorted(([name, *astuple(each)] for name, each in self._known.items()), key=lambda row: str(row[0]))
        waiting = sorted(([name, *astuple(each)] for name, each in self._candidates.items()), key=lambda row: str(row[0]))
        return [self._rows, self._newest, known, waiting]

    @classmethod
    def from_state(cls, state: list[object]) -> Versions:
        """The versions whose `state` that was. Raises ValueError or TypeError for anything else."""
        rows, newest, known, waiting = state
        if not (isinstance(rows, int) and isinstance(newest, int) and isinstance(known, list) and isinstance(waiting, list)):
            raise TypeError("the versions have two counts and two lists")
        versions = cls()
        versions._rows, versions._newest = rows, newest
        for name, number, row, user in known:
            versions._known[str(name)] = Known(int(number), int(row), str(user))
        for name, user, count, row in waiting:
            versions._candidates[str(name)] = Candidate(str(user), int(count), int(row))
        return versions
