"""The tree of versions: going back in it, and deleting what nobody goes back to. Each version points at the one that it was made from."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, select, update

from peakgate.server.store import calibrations as versions
from peakgate.server.store import leases, lines, shadows
from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import KEPT_KINDS, PROMOTED, SHADOW, CalibrationRow, Lease, Switched
from peakgate.server.store.tables import calibrations, observations
from peakgate.server.store.thinning import Gone, Version, thinned

LONGEST_NOTE = 1000
"""Characters: of a version that is switched to again and again the newest words stay."""


def promote(connection: Connection, sequence: int, *, note: str, lease: Lease) -> Switched | None:
    """Makes a stored version the active one, and sets aside what was observed since its line parted from the one that was.

    Both are kept from then on, and `note` is told of both. None, with nothing written, when another replica is the writer.
    """
    if not leases.holds(connection, lease):
        return None
    take(connection, Lock.CALIBRATION)
    left, target = versions.active(connection), versions.at(connection, sequence)
    before = left.version if left is not None else ""
    if target is None or target.version == before:
        return Switched(before=before)
    versions.retire(connection)
    shadows.end(connection)  # it was compared with another version
    if left is not None:
        _tell(connection, left, f"left for {target.version}{note}", state="retired")
    _tell(connection, target, f"promoted after {before or 'none'}{note}", state="active")
    return Switched(before=before, set_aside=lines.set_aside(connection, sequence))


def earlier(connection: Connection, sequence: int) -> CalibrationRow | None:
    """The version to go back to: the newest one before it on its line that is kept for a reason, else the one before it."""
    tree = _tree(connection)
    line = _line(tree, sequence)[1:]
    before = line[0] if line else max((each for each in tree if each < sequence and tree[each].kind != SHADOW), default=0)
    return versions.at(connection, next((each for each in line if tree[each].kind in KEPT_KINDS), before))


def thin(connection: Connection, *, kept_from_us: int, lease: Lease) -> int:
    """Deletes versions that nobody goes back to (thinning.py). Returns how many; none when another replica is the writer."""
    if not leases.holds(connection, lease):
        return 0
    take(connection, Lock.CALIBRATION)
    gone = thinned(_tree(connection).values(), kept_from_us=kept_from_us, edges=lines.edges(connection))
    for each in gone:
        _delete(connection, each)
    return len(gone)


def _delete(connection: Connection, gone: Gone) -> None:
    if gone.child:
        for column in (observations.c.sequence, observations.c.released):
            connection.execute(update(observations).where(column == gone.sequence).values({column: gone.child}))
        connection.execute(update(calibrations).where(calibrations.c.sequence == gone.child).values(parent=gone.parent))
    else:  # what it had released is kept out again
        released = update(observations).where(observations.c.released == gone.sequence)
        connection.execute(released.values(released=0, learned=0))
    connection.execute(delete(calibrations).where(calibrations.c.sequence == gone.sequence))


def _tell(connection: Connection, row: CalibrationRow, text: str, *, state: str) -> None:
    note = "; ".join(filter(None, (text, row.note)))[:LONGEST_NOTE]
    values = {"state": state, "kind": row.kind or PROMOTED, "note": note}
    connection.execute(update(calibrations).where(calibrations.c.sequence == row.sequence).values(**values))


def _tree(connection: Connection) -> dict[int, Version]:
    columns = calibrations.c
    query = select(columns.sequence, columns.parent, columns.state, columns.kind, columns.created_us)
    return {row.sequence: Version(**row._mapping) for row in connection.execute(query)}  # noqa: SLF001 - SQLAlchemy's documented name


def _line(tree: Mapping[int, Version], sequence: int) -> list[int]:
    """A version and those that led to it, the newest first, as far as they are kept."""
    line = [sequence]
    while tree[line[-1]].parent in tree:
        line.append(tree[line[-1]].parent)
    return line
