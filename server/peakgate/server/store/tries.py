"""Rejected jobs that were let run all the same: a budget for each user, which requests at the same time cannot pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, insert, select

from peakgate.server.store import predictions
from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import REQUEST_CHARACTERS, Complete, PredictionRow, Spent, StoredPrediction, TryRow
from peakgate.server.store.tables import tries


def spend(connection: Connection, row: PredictionRow, reason: str, *, since_us: int, limit: int, complete: Complete) -> Spent:
    """Spends one of the tries that the user of `row` has had since a moment, and stores the prediction with it.

    The try of a request that comes again is found again, and costs nothing. Whoever spends is alone until the transaction ends.
    """
    take(connection, Lock.TRIES)
    query = select(tries.c.prediction, tries.c.created_us).where(tries.c.user_name == row.user, tries.c.created_us > since_us)
    spent = [(found.prediction, found.created_us) for found in connection.execute(query.order_by(tries.c.created_us))]
    moments = tuple(created_us for _, created_us in spent)
    again = next((name for name, _ in spent if row.request_id and _is_of_request(name, row.prediction)), "")
    if not again and len(spent) >= limit:
        return Spent(prediction="", created_us=moments)
    found = Spent(prediction=again or row.prediction, created_us=moments if again else tuple(sorted((*moments, row.created_us))))
    predictions.add(connection, [complete(replace(row, prediction=found.prediction), found)])
    if not again:
        values = {"prediction": row.prediction, "user_name": row.user, "reason": reason, "created_us": row.created_us}
        connection.execute(insert(tries), values)
    return found


def with_tries(connection: Connection, found: Sequence[StoredPrediction]) -> list[StoredPrediction]:
    """The predictions, each with its try. One statement for all of them."""
    names = [each.row.prediction for each in found if each.row.user]
    rows = connection.execute(select(tries).where(tries.c.prediction.in_(names))) if names else ()
    by_name = {
        row.prediction: TryRow(prediction=row.prediction, user=row.user_name, reason=row.reason, created_us=row.created_us) for row in rows
    }
    return [replace(each, tried=by_name.get(each.row.prediction)) for each in found]


def _is_of_request(one: str, other: str) -> bool:
    return one[-REQUEST_CHARACTERS:] == other[-REQUEST_CHARACTERS:]
