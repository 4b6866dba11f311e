"""Versions of the calibration, and the mark of each observation that was applied to it: both in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, or_, select, update

from peakgate.server.store import ended, lines
from peakgate.server.store.observations import observation_of
from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import CalibrationRow, KeptOut, ObservationRow
from peakgate.server.store.session import insert_once
from peakgate.server.store.tables import calibrations, observations, predictions

VERSIONS_KEPT = 100
"""Versions that can be gone back to: some 400 KB each with a full pool of 2000 rows."""


LIVE = ("active", "shadow")
"""States of versions that are in use, however old they are."""


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
    if new is not None and active_sequence(connection) != expected_sequence:
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
    columns = calibrations.c
    oldest = (columns.sequence <= sequence - VERSIONS_KEPT, columns.state.not_in(LIVE), columns.sequence.not_in(lines.edges(connection)))
    connection.execute(delete(calibrations).where(*oldest))
    return sequence


def promote(connection: Connection, sequence: int) -> None:
    """Makes a stored version the active one, and sets aside what was observed since its line parted from the one that was."""
    take(connection, Lock.CALIBRATION)
    _retire(connection)
    connection.execute(update(calibrations).where(calibrations.c.sequence == sequence).values(state="active"))
    lines.set_aside(connection, sequence)


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
    """The version that was made before the one at `sequence`, and was no shadow that came to nothing."""
    columns = calibrations.c
    is_whole = or_(columns.trial == "", columns.kind == "promoted")
    query = select(calibrations).where(columns.sequence < sequence, is_whole).order_by(calibrations.c.sequence.desc()).limit(1)
    row = connection.execute(query).first()
    return _calibration(row) if row is not None else None


def page(connection: Connection, *, limit: int, before_sequence: int | None) -> list[CalibrationRow]:
    """Versions, newest first."""
    query = select(calibrations).order_by(calibrations.c.sequence.desc()).limit(limit)
    if before_sequence is not None:
        query = query.where(calibrations.c.sequence < before_sequence)
    return [_calibration(row) for row in connection.execute(query)]


def kept_out(connection: Connection, *, limit: int, offset: int, group: str = "", reason: str = "") -> list[KeptOut]:
    """Observations that were kept out, newest first: of a group, with a reason word, where one is named."""
    table = observations.c
    order = (table.applied_us.desc(), table.prediction, table.job, table.restart)
    joined = select(observations, predictions.c.group_name).join(predictions, predictions.c.prediction == table.prediction)
    query = joined.where(table.learned == 0, *_wanted(predictions.c.group_name, group), *_wanted(table.reason, reason))
    found = connection.execute(query.order_by(*order).limit(limit).offset(offset))
    return [KeptOut(row=observation_of(row), group=row.group_name) for row in found]


def _wanted(column: ColumnElement[str], word: str) -> tuple[ColumnElement[bool], ...]:
    return (column == word,) if word else ()


def active_sequence(connection: Connection) -> int:
    """Place of the active version; 0: there is none."""
    newest = select(func.coalesce(func.max(calibrations.c.sequence), 0)).where(calibrations.c.state == "active")
    return int(connection.execute(newest).scalar_one())


def _retire(connection: Connection) -> None:
    connection.execute(update(calibrations).where(calibrations.c.state == "active").values(state="retired"))


def _calibration(row: Row[tuple[object, ...]]) -> CalibrationRow:
    return CalibrationRow(**row._mapping)  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
