"""Ended attempts with their jobs, in the order of their ends: what a site's past is replayed from."""

from __future__ import annotations

import zlib

from sqlalchemy import Connection, or_, select, tuple_

from peakgate.calibration.gate import CARD_FULL
from peakgate.server.store.records import PastRow, Place
from peakgate.server.store.tables import jobs, observations, predictions


def page(connection: Connection, *, since_us: int, after: Place | None, limit: int) -> list[PastRow]:
    """At most `limit` attempts that ended at `since_us` or later, behind a place.

    Of those that the calibration was told nothing of only a full card says whether the job fits: it ended well.
    """
    table = observations.c
    order = (table.finished_us, table.prediction, table.job, table.restart)
    columns = (*order, table.observed_bytes, table.reason, table.longest_sequence, table.body)
    query = (
        select(*columns, predictions.c.created_us, jobs.c.body.label("job_body"))
        .join(predictions, predictions.c.prediction == table.prediction)
        .join(jobs, jobs.c.digest == predictions.c.job_digest)
        .where(table.finished_us >= since_us, or_(table.body != "", table.reason == CARD_FULL))
        .order_by(*order)
        .limit(limit)
    )
    if after is not None:
        query = query.where(tuple_(*order) > after)
    return [
        PastRow(
            prediction=row.prediction,
            job=row.job,
            restart=row.restart,
            created_us=row.created_us,
            finished_us=row.finished_us,
            observed_bytes=row.observed_bytes,
            longest_sequence=row.longest_sequence,
            reason=row.reason,
            body=row.body,
            job_body=zlib.decompress(row.job_body),
        )
        for row in connection.execute(query)
    ]
