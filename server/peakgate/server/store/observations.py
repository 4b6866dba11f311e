"""What was made of ended attempts, found by prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from sqlalchemy import Connection, Row, select

from peakgate.server.store.records import ObservationRow, StoredPrediction
from peakgate.server.store.tables import observations


def with_observations(connection: Connection, predictions: Sequence[StoredPrediction]) -> list[StoredPrediction]:
    """The predictions with what was observed of them, the newest attempt first. One statement for all of them."""
    names = [each.row.prediction for each in predictions]
    order = (observations.c.finished_us.desc(), observations.c.job, observations.c.restart.desc())
    found: dict[str, list[ObservationRow]] = {}
    for row in connection.execute(select(observations).where(observations.c.prediction.in_(names)).order_by(*order)):
        found.setdefault(row.prediction, []).append(observation_of(row))
    return [_joined(each, tuple(found.get(each.row.prediction, ()))) for each in predictions]


def observation_of(row: Row[tuple[object, ...]]) -> ObservationRow:
    """A row of the table as a record."""
    values = row._mapping  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
    record = {field.name: values[field.name] for field in fields(ObservationRow)}
    return ObservationRow(**(record | {"learned": bool(record["learned"])}))


def _joined(prediction: StoredPrediction, rows: tuple[ObservationRow, ...]) -> StoredPrediction:
    """The highest peak stays known when the rows that it was seen in are gone."""
    highest = max((prediction.observed_device_bytes, *(row.observed_bytes for row in rows)))
    return replace(prediction, observed_device_bytes=highest, observations=rows)
