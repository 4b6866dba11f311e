"""The shadow: one version at most that learns beside the active one. It stays one row, which every version that is learned moves on."""

from __future__ import annotations

import json
from dataclasses import replace

from sqlalchemy import Connection, func, select, update

from peakgate.server.store import leases, lines
from peakgate.server.store.calibrations import active_sequence, add, at
from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import OPEN, PROMOTED, SHADOW, CalibrationRow, Lease
from peakgate.server.store.tables import calibrations

_IS_SHADOW = calibrations.c.state == "shadow"


def place(connection: Connection) -> int:
    """Sequence of the shadow; 0: there is none."""
    return int(connection.execute(select(calibrations.c.sequence).where(_IS_SHADOW)).scalar() or 0)


def current(connection: Connection) -> CalibrationRow | None:
    """The shadow."""
    return at(connection, place(connection))


def start(connection: Connection, new: CalibrationRow, *, base: int, expected_sequence: int, lease: Lease) -> bool:
    """Stores a shadow that was made from version `base` (0: from everything), beside the active version `expected_sequence`.

    False, with nothing written, when there is a shadow, another version is active, or another
    replica is the writer.
    """
    if not leases.holds(connection, lease):
        return False
    take(connection, Lock.CALIBRATION)
    if place(connection) or active_sequence(connection) != expected_sequence:
        return False
    since = (_newest(connection) + 1, OPEN)
    ranges = [since, *lines.ranges_of(connection, base)] if base else [(1, OPEN)]
    more = {"ranges": ranges, "edges": [base, expected_sequence] if base else lines.tips(connection), "known": expected_sequence}
    trial = json.dumps(json.loads(new.trial) | more)
    add(connection, replace(new, state="shadow", kind=SHADOW, parent=0, trial=trial))
    return True


def keep(connection: Connection, shadow: CalibrationRow, *, known: int) -> None:
    """What a shadow has become beside the active version `known`; one that has ended meanwhile stays as it is."""
    trial = json.dumps(json.loads(shadow.trial) | {"known": known})
    values = {"observations": shadow.observations, "groups": shadow.groups, "body": shadow.body, "trial": trial}
    connection.execute(update(calibrations).where(calibrations.c.sequence == shadow.sequence, _IS_SHADOW).values(**values))


def rebuilt(connection: Connection, shadow: CalibrationRow, *, expected_sequence: int, lease: Lease) -> None:
    """The same of a shadow that was made again beside `expected_sequence`; nothing when another version is active by now, or
    another replica is the writer."""
    if not leases.holds(connection, lease):
        return
    take(connection, Lock.CALIBRATION)
    if active_sequence(connection) == expected_sequence:
        keep(connection, shadow, known=expected_sequence)


def end(connection: Connection) -> int:
    """Ends the shadow: it answers to nothing any more, and what it has shown stays. Returns its place; 0: there was none."""
    sequence = place(connection)
    connection.execute(update(calibrations).where(_IS_SHADOW).values(state="retired"))
    return sequence


def promote(connection: Connection, shadow: int, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
    """Makes of a shadow the version `new`, which is active, and of what it took in what counts.

    False, with nothing written, when it is no shadow any more, or has not seen the active version.
    """
    if not leases.holds(connection, lease):
        return False
    take(connection, Lock.CALIBRATION)
    row = at(connection, shadow)
    if row is None or row.state != "shadow" or active_sequence(connection) != expected_sequence:
        return False
    trial = json.loads(row.trial)
    if trial["known"] != expected_sequence:
        return False
    end(connection)
    trial["ranges"] = lines.closed(lines.ranges_in(row.trial), _newest(connection))
    trial["edges"] += lines.tips(connection)
    lines.find(connection, expected_sequence)
    _leave(connection, expected_sequence)
    sequence = add(connection, replace(new, parent=expected_sequence, trial=json.dumps(trial)))
    lines.set_aside(connection, sequence)
    return True


def _newest(connection: Connection) -> int:
    """No observation was taken in by a version after it."""
    return int(connection.execute(select(func.max(calibrations.c.sequence))).scalar() or 0)


def _leave(connection: Connection, sequence: int) -> None:
    """The version that was active is one to go back to."""
    left = update(calibrations).where(calibrations.c.sequence == sequence, calibrations.c.kind == "")
    connection.execute(left.values(kind=PROMOTED))
