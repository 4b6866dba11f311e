"""Which observations a version of the calibration knows: those that it and its line took in, and what a promoted shadow brought along."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, and_, false, or_, select, update

from peakgate.server.store.records import OPEN, SHADOW
from peakgate.server.store.tables import calibrations, observations

FOUND = 2
"""`aside` of what no version that is kept had taken in and a shadow of everything brought back; one more when it is set aside again."""

Range = tuple[int, int]
"""First and last sequence of versions that took observations in, both included."""


def ranges_of(connection: Connection, sequence: int) -> list[Range]:
    """The line that led to a version, as far as it is kept. What the oldest one of it was made from is on the line too."""
    columns = select(calibrations.c.sequence, calibrations.c.parent, calibrations.c.trial)
    rows = {row.sequence: row for row in connection.execute(columns)}
    found: list[Range] = []
    place = sequence
    while place in rows:
        found.append((place, place))
        brought = ranges_in(rows[place].trial)
        if brought:
            return [*found, *brought]
        place = rows[place].parent
    return found


def ranges_in(trial: str) -> list[Range]:
    """What a shadow learned, as its trial says; nothing for other versions."""
    pairs = json.loads(trial).get("ranges", ()) if trial else ()
    return [(int(first), int(last)) for first, last in pairs]


def tips(connection: Connection) -> list[int]:
    """Versions that none was made from: what a shadow of everything learned of them must not become that of a version yet to come."""
    parents = set(connection.execute(select(calibrations.c.parent)).scalars())
    return [place for place in connection.execute(select(calibrations.c.sequence)).scalars() if place not in parents]


def edges(connection: Connection) -> frozenset[int]:
    """Versions that must stay: shadows that were promoted, which say what their line knows, and those with which the ranges of such a one,
    or of the shadow that there is, begin or end: what they took in must not become another version's."""
    columns = calibrations.c
    query = select(columns.sequence, columns.trial).where(columns.trial != "", or_(columns.state == SHADOW, columns.kind != SHADOW))
    return frozenset(place for row in connection.execute(query) for place in (row.sequence, *json.loads(row.trial).get("edges", ())))


def closed(ranges: Sequence[Range], until: int) -> list[Range]:
    """The ranges of a shadow that ends when `until` is the newest version."""
    return [(first, min(last, until)) for first, last in ranges]


def within(sequence: int, ranges: Sequence[Range]) -> bool:
    """Whether a version is in these ranges."""
    return any(first <= sequence <= last for first, last in ranges)


def belongs(ranges: Sequence[Range]) -> ColumnElement[bool]:
    """Whether an observation was taken in by these versions, or before the first of them by the line that is active."""
    older = and_(observations.c.sequence < min((first for first, _ in ranges), default=OPEN), observations.c.aside == 0)
    return or_(_in(ranges), older)


def set_aside(connection: Connection, sequence: int) -> int:
    """What the line of a version did not take in counts no more, and what it took in counts again; what is older stays as it is, but for
    what only a shadow of everything had brought back. Returns how many observations were set aside.
    """
    ranges = ranges_of(connection, sequence)
    is_older = observations.c.sequence < min((first for first, _ in ranges), default=OPEN)
    is_lost = or_(and_(~is_older, ~_in(ranges)), and_(is_older, observations.c.aside == FOUND))
    aside = connection.execute(update(observations).where(is_lost, counts()).values(aside=observations.c.aside + 1))
    is_back = and_(~is_older, _in(ranges), ~counts())
    connection.execute(update(observations).where(is_back).values(aside=observations.c.aside - 1))
    return aside.rowcount


def find(connection: Connection, sequence: int) -> None:
    """Before a shadow of everything takes the place of a version: marks what is set aside and older than that version's line. Nothing else
    would say that the line does not know it.
    """
    oldest = min((first for first, _ in ranges_of(connection, sequence)), default=OPEN)
    lost = (observations.c.sequence < oldest, observations.c.aside == 1)
    connection.execute(update(observations).where(*lost).values(aside=FOUND + 1))


def counts() -> ColumnElement[bool]:
    """Whether an observation counts for the active version: neither set aside, nor found and set aside again."""
    return observations.c.aside % FOUND == 0


def _in(ranges: Sequence[Range]) -> ColumnElement[bool]:
    return or_(false(), *(observations.c.sequence.between(first, last) for first, last in _joined(ranges)))


def _joined(ranges: Sequence[Range]) -> Iterator[Range]:
    """The same in as few ranges as will do, so that a statement stays short."""
    first = last = None
    for begin, end in sorted(ranges):
        if first is not None and last is not None and begin <= last + 1:
            last = max(last, end)
            continue
        if first is not None and last is not None:
            yield first, last
        first, last = begin, end
    if first is not None and last is not None:
        yield first, last
