"""What an audit of the margin reads: ended attempts beside their predictions, one by one, and what SQL can count by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, case, func, select

from peakgate.calibration.gate import USER_QUARANTINED
from peakgate.server.store.audit_records import AlarmRow, AuditCounts, AuditRow, AuditWindow
from peakgate.server.store.records import ALARM
from peakgate.server.store.tables import calibrations, observations, predictions, tries

ROWS_AT_ONCE = 1000
"""Rows that are fetched at a time: two megabytes with their answers."""

ALARMS_LISTED = 500
"""Newest drift alarms of a report."""

REJECTED = "REJECT"

_Column: TypeAlias = "ColumnElement[Any]"
_Query: TypeAlias = "Select[*tuple[Any, ...]]"
_Row: TypeAlias = "Row[*tuple[Any, ...]]"


class SqlAudit:
    """One window, read in one transaction."""

    def __init__(self, connection: Connection, window: AuditWindow) -> None:
        self._connection = connection
        self._window = window

    def counts(self) -> AuditCounts:
        """What needs no look at single attempts."""
        rows = self._ended(func.count()).where(observations.c.learned == 1)
        return AuditCounts(
            rows=int(self._connection.execute(rows).scalar_one()),
            rejections=self._rejections(),
            kept_out=self._kept_out(),
            tries=self._tries(),
        )

    def _rejections(self) -> dict[str, int]:
        group = predictions.c.group_name
        query = select(group, func.count()).where(predictions.c.verdict == REJECTED, *self._made(predictions.c.created_us))
        return dict(tuple(row) for row in self._all(query.group_by(group)))

    def _kept_out(self) -> dict[tuple[str, str, str], int]:
        by = predictions.c.group_name, observations.c.reason, predictions.c.verdict
        query = self._ended(*by, func.count()).where(observations.c.learned == 0).group_by(*by)
        return {(group, reason, verdict): rows for group, reason, verdict, rows in self._all(query)}

    def _tries(self) -> dict[tuple[str, str], int]:
        by = predictions.c.group_name, predictions.c.state
        query = select(*by, func.count()).join_from(tries, predictions, predictions.c.prediction == tries.c.prediction)
        found = self._all(query.where(*self._made(tries.c.created_us)).group_by(*by))
        return {(group, state): rows for group, state, rows in found}

    def rows(self) -> Iterator[AuditRow]:
        """Every attempt that was learned from, in no order; only some of them are in memory at a time."""
        is_as_predicted = observations.c.predicted_bytes == predictions.c.device_bytes
        query = self._ended(
            predictions.c.group_name,
            predictions.c.verdict,
            predictions.c.required_bytes,
            predictions.c.bound_bytes,
            predictions.c.total_bytes,
            predictions.c.answer,
            observations.c.kind,
            observations.c.reason,
            observations.c.source,
            observations.c.predicted_bytes,
            observations.c.lower_bytes,
            observations.c.upper_bytes,
            observations.c.finished_us,
            case((is_as_predicted, ""), else_=observations.c.body),
        ).where(observations.c.learned == 1)
        for row in self._streamed(query):
            yield AuditRow(**dict(zip(AuditRow.__slots__, row, strict=True)))

    def quarantined(self) -> Iterator[tuple[str, str]]:
        """(group, what the calibration was told) of every attempt that was kept out as its user's."""
        query = self._ended(predictions.c.group_name, observations.c.body).where(observations.c.reason == USER_QUARANTINED)
        yield from ((group, body) for group, body in self._streamed(query.where(observations.c.learned == 0)))

    def alarms(self) -> list[AlarmRow]:
        """Drift alarms, the oldest first."""
        table = calibrations.c
        within = and_(table.created_us >= self._window.since_us, table.created_us < self._window.until_us)
        query = select(table.created_us, table.version, table.note).where(table.kind == ALARM, within)
        rows = self._all(query.order_by(table.sequence.desc()).limit(ALARMS_LISTED))
        return [AlarmRow(created_us=created_us, version=version, note=note) for created_us, version, note in reversed(rows)]

    def _ended(self, *columns: _Column) -> _Query:
        joined = select(*columns).join_from(observations, predictions, predictions.c.prediction == observations.c.prediction)
        return joined.where(*self._made(observations.c.finished_us))

    def _made(self, moment: _Column) -> list[ColumnElement[bool]]:
        """In the window and of its groups. A name is compared letter by letter: it may hold what LIKE takes for a pattern."""
        prefix = self._window.group
        of_group = [func.substr(predictions.c.group_name, 1, len(prefix)) == prefix] if prefix else []
        return [moment >= self._window.since_us, moment < self._window.until_us, *of_group]

    def _all(self, query: _Query) -> list[_Row]:
        return list(self._connection.execute(query).all())

    def _streamed(self, query: _Query) -> Iterator[_Row]:
        yield from self._connection.execution_options(yield_per=ROWS_AT_ONCE).execute(query)
