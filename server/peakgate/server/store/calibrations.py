"""Versions of the calibration, and the mark of each observation that was applied to it: both in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from peakgate.server.store import ended
from peakgate.server.store.observations import observation_of
from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import CalibrationRow, ObservationRow
from peakgate.server.store.session import insert_once
from peakgate.server.store.tables import calibrations, observations, predictions

VERSIONS_KEPT = 100
"""Versions that can be gone back to: some 400 KB each with a full pool of 2000 rows."""


def active(connection: Connection) -> CalibrationRow | None:
    """The active version; None before anything was learned."""
    query = select(calibrations).where(calibrations.c.state == "active").order_by(calibrations.c.sequence.desc()).limit(1)
    row = connection.execute(query).first()
    return _calibration(row) if row is not None else None


class AppliedError(Exception):
    """An observation was applied before: nothing of the transaction may stay."""


def apply(connection: Connection, rows: Sequence[ObservationRow], new: CalibrationRow | None, *, expected_sequence: int) -> bool:
    """Marks observations as applied and makes `new` the active version (None: none of them changed it).

    False, with nothing written, when another replica has moved the calibration on. Raises AppliedError when one was applied before.
    """
    if new is not None:
        take(connection, Lock.CALIBRATION)
    if new is not None and _active_sequence(connection) != expected_sequence:
        return False
    sequence = add(connection, new) if new is not None else 0
    for row in sorted(rows, key=lambda each: (each.prediction, each.job, each.restart)):
        if not insert_once(connection, observations, asdict(row) | {"learned": int(row.learned), "sequence": sequence, "aside": 0}):
            raise AppliedError
        ended.strike(connection, row.prediction, row.job, row.restart)
    return True


def add(connection: Connection, new: CalibrationRow) -> int:
    """Stores a version as the active one and forgets the oldest. Returns its sequence."""
    _retire(connection)
    values = {name: value for name, value in asdict(new).items() if name != "sequence"}
    key = connection.execute(insert(calibrations), values).inserted_primary_key
    sequence = int(key[0]) if key is not None else 0
    connection.execute(delete(calibrations).where(calibrations.c.sequence <= sequence - VERSIONS_KEPT, calibrations.c.state != "active"))
    return sequence


def promote(connection: Connection, sequence: int) -> None:
    """Makes a stored version the active one, and sets aside what was observed since its line parted from the one that was."""
    take(connection, Lock.CALIBRATION)
    _retire(connection)
    connection.execute(update(calibrations).where(calibrations.c.sequence == sequence).values(state="active"))
    line = _line(connection, sequence)
    of_line = observations.c.sequence.in_(line)
    since = observations.c.sequence >= min(line)
    connection.execute(update(observations).where(since, ~of_line, observations.c.aside == 0).values(aside=1))
    connection.execute(update(observations).where(since, of_line, observations.c.aside == 1).values(aside=0))


def taken_in(connection: Connection, after: int, *, model_version: str) -> list[str]:
    """What the calibration was told of the observations that led from version `after` (0: from none) to the active one."""
    joined = select(observations.c.body).join(predictions, predictions.c.prediction == observations.c.prediction)
    query = joined.where(observations.c.sequence > after, observations.c.aside == 0, predictions.c.model_version == model_version)
    return list(connection.execute(query).scalars())


def at(connection: Connection, sequence: int) -> CalibrationRow | None:
    """The version at a place, while it is kept."""
    row = connection.execute(select(calibrations).where(calibrations.c.sequence == sequence)).first()
    return _calibration(row) if row is not None else None


def by_version(connection: Connection, version: str) -> CalibrationRow | None:
    """The newest row of a version."""
    query = select(calibrations).where(calibrations.c.version == version).order_by(calibrations.c.sequence.desc()).limit(1)
    row = connection.execute(query).first()
    return _calibration(row) if row is not None else None


def before(connection: Connection, sequence: int) -> CalibrationRow | None:
    """The version that was made before the one at `sequence`."""
    query = select(calibrations).where(calibrations.c.sequence < sequence).order_by(calibrations.c.sequence.desc()).limit(1)
    row = connection.execute(query).first()
    return _calibration(row) if row is not None else None


def page(connection: Connection, *, limit: int, before_sequence: int | None) -> list[CalibrationRow]:
    """Versions, newest first."""
    query = select(calibrations).order_by(calibrations.c.sequence.desc()).limit(limit)
    if before_sequence is not None:
        query = query.where(calibrations.c.sequence < before_sequence)
    return [_calibration(row) for row in connection.execute(query)]


def kept_out(connection: Connection, *, limit: int, offset: int) -> list[ObservationRow]:
    """Observations that were kept out, newest first."""
    order = (observations.c.applied_us.desc(), observations.c.prediction, observations.c.job, observations.c.restart)
    query = select(observations).where(observations.c.learned == 0).order_by(*order).limit(limit).offset(offset)
    return [observation_of(row) for row in connection.execute(query)]


def _line(connection: Connection, sequence: int) -> list[int]:
    """A version and those that led to it, as far as they are kept."""
    parents = {row.sequence: row.parent for row in connection.execute(select(calibrations.c.sequence, calibrations.c.parent))}
    line = [sequence]
    while parents.get(line[-1], 0) in parents:
        line.append(parents[line[-1]])
    return line


def _active_sequence(connection: Connection) -> int:
    newest = select(func.coalesce(func.max(calibrations.c.sequence), 0)).where(calibrations.c.state == "active")
    return int(connection.execute(newest).scalar_one())


def _retire(connection: Connection) -> None:
    connection.execute(update(calibrations).where(calibrations.c.state == "active").values(state="retired"))


def _calibration(row: Row[tuple[object, ...]]) -> CalibrationRow:
    return CalibrationRow(**row._mapping)  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
