"""Versions of the calibration, and the mark of each observation that was applied to it: both in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import ColumnElement, Connection, Row, func, insert, literal, or_, select, update

from peakgate.server.store import ended, leases
from peakgate.server.store.observations import observation_of
from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import CalibrationRow, KeptOut, Lease, ObservationRow
from peakgate.server.store.session import insert_once
from peakgate.server.store.tables import calibrations, observations, predictions

_ALL_BUT_BODY = [column for column in calibrations.c if column.name != "body"]
"""Of a list: a body has some 400 KB."""


def active(connection: Connection) -> CalibrationRow | None:
    """The active version; None before anything was learned."""
    query = select(calibrations).where(calibrations.c.state == "active").order_by(calibrations.c.sequence.desc()).limit(1)
    row = connection.execute(query).first()
    return _calibration(row) if row is not None else None


def active_sequence(connection: Connection) -> int:
    """Place of the active version; 0 before anything was learned. The newest is looked at first, and mostly is the one."""
    query = select(calibrations.c.sequence).where(calibrations.c.state == "active").order_by(calibrations.c.sequence.desc()).limit(1)
    return connection.execute(query).scalar() or 0


class AppliedError(Exception):
    """An observation was applied before: nothing of the transaction may stay."""


def apply(
    connection: Connection, rows: Sequence[ObservationRow], new: CalibrationRow | None, *, expected_sequence: int, lease: Lease
) -> bool:
    """Marks observations as applied and makes `new` the active version (None: none of them changed it).

    False, with nothing written, when another replica is the writer, or has moved the calibration on. Raises AppliedError when an
    observation was applied before.
    """
    if not leases.holds(connection, lease):
        return False
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
    """Stores a version, as `epoch.sequence`, which no other one is ever called. Returns its sequence."""
    if new.state == "active":
        retire(connection)
    sequence = _next_sequence(connection)
    connection.execute(insert(calibrations), asdict(new) | {"sequence": sequence, "version": f"{new.version}.{sequence}"})
    return sequence


def at(connection: Connection, sequence: int) -> CalibrationRow | None:
    """The version at a place, while it is kept."""
    row = connection.execute(select(calibrations).where(calibrations.c.sequence == sequence)).first()
    return _calibration(row) if row is not None else None


def by_version(connection: Connection, version: str) -> CalibrationRow | None:
    """A version by its name; of those that an earlier release named alike the newest."""
    query = select(calibrations).where(calibrations.c.version == version).order_by(calibrations.c.sequence.desc()).limit(1)
    row = connection.execute(query).first()
    return _calibration(row) if row is not None else None


def page(connection: Connection, *, limit: int, before_sequence: int | None, chosen_only: bool = False) -> list[CalibrationRow]:
    """Versions without their bodies, newest first. `chosen_only`: those that are kept for a reason, or in use."""
    query = select(*_ALL_BUT_BODY, literal("").label("body")).order_by(calibrations.c.sequence.desc()).limit(limit)
    if before_sequence is not None:
        query = query.where(calibrations.c.sequence < before_sequence)
    if chosen_only:
        query = query.where(or_(calibrations.c.state != "retired", calibrations.c.kind != ""))
    return [CalibrationRow(**row._mapping) for row in connection.execute(query)]  # noqa: SLF001 - as below


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


def retire(connection: Connection) -> None:
    """No version is active any more."""
    connection.execute(update(calibrations).where(calibrations.c.state == "active").values(state="retired"))


def _next_sequence(connection: Connection) -> int:
    """On SQLite whoever writes is alone, and the newest version is never deleted (history.py)."""
    if connection.dialect.name == "postgresql":
        return int(connection.execute(select(func.nextval(func.pg_get_serial_sequence("calibrations", "sequence")))).scalar_one())
    return int(connection.execute(select(func.coalesce(func.max(calibrations.c.sequence), 0) + 1)).scalar_one())


def _calibration(row: Row[tuple[object, ...]]) -> CalibrationRow:
    return CalibrationRow(**row._mapping)  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
