"""The kinds of card that peaks were seen on, node by node."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, distinct, func, literal, select, tuple_

from peakgate.server.store.records import CardPlace, NodeCardRow
from peakgate.server.store.tables import peaks

_KEY = (peaks.c.cluster, peaks.c.node, peaks.c.gpu_name, peaks.c.gpu_total_bytes)


def page(connection: Connection, *, limit: int, after: CardPlace | None, cluster: str) -> Sequence[NodeCardRow]:
    """By cluster, node, name and memory. Of an import, whose cards have no memory, there are none."""
    counted = (func.count(distinct(peaks.c.gpu_uuid)), func.max(peaks.c.last_us))
    query = select(*_KEY, *counted).where(peaks.c.gpu_total_bytes > 0).group_by(*_KEY).order_by(*_KEY).limit(limit)
    if cluster:
        query = query.where(peaks.c.cluster == cluster)
    if after is not None:
        query = query.where(tuple_(*_KEY) > tuple_(*map(literal, after)))
    return [NodeCardRow(*row) for row in connection.execute(query)]
