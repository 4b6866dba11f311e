"""What the calibration was told of observations, with what is needed to tell it again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from sqlalchemy import Connection, Row, Select, or_, select

from peakgate.server.store import lines
from peakgate.server.store.records import OPEN, ToldRow
from peakgate.server.store.tables import jobs, observations, predictions


def of_line(connection: Connection, sequence: int, *, after: int) -> list[ToldRow]:
    """What the line of the active version `sequence` was told since version `after` (0: ever): taken in, or released."""
    ranges = lines.ranges_of(connection, sequence)
    since = or_(observations.c.sequence > after, observations.c.released > after)
    rows = connection.execute(_query().where(since, lines.counts()))
    return [_told(row, ranges) for row in rows if row.sequence > after or _is_released(row.released, ranges)]


def of_ranges(connection: Connection, ranges: Sequence[lines.Range], *, after: int) -> list[ToldRow]:
    """What versions of these ranges were told after the version `after`."""
    query = _query().where(lines.belongs(ranges), observations.c.sequence > after)
    return [_told(row, ranges) for row in connection.execute(query)]


def _query() -> Select[tuple[object, ...]]:
    of_prediction = predictions.c.prediction == observations.c.prediction
    columns = (
        observations.c.body,
        observations.c.sequence,
        observations.c.longest_sequence,
        observations.c.released,
        predictions.c.model_version,
        predictions.c.job_digest,
    )
    joined = (
        select(*columns, jobs.c.body.label("job")).join(predictions, of_prediction).join(jobs, jobs.c.digest == predictions.c.job_digest)
    )
    return joined.where(observations.c.body != "", observations.c.sequence > 0)


def _is_released(released: int, ranges: Sequence[lines.Range]) -> bool:
    """By the line itself, or by what it came from before the oldest version that is kept."""
    oldest = min((first for first, _ in ranges), default=OPEN)
    return bool(released) and (released < oldest or lines.within(released, ranges))


def _told(row: Row[tuple[object, ...]], ranges: Sequence[lines.Range]) -> ToldRow:
    return ToldRow(
        text=row.body,
        released=_is_released(row.released, ranges),
        model_version=row.model_version,
        job_digest=row.job_digest,
        job_body=zlib.decompress(row.job),
        longest_sequence=row.longest_sequence,
    )
