"""Observations that were kept out and that a person lets be learned."""

from __future__ import annotations

from sqlalchemy import Connection, update

from peakgate.server.store import leases, lines
from peakgate.server.store.calibrations import AppliedError, active_sequence, add
from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import CalibrationRow, Lease, ObservationRow
from peakgate.server.store.tables import observations


def release(connection: Connection, row: ObservationRow, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
    """Activates `new`, which has learned the observation, and says so in its row: the version, who and why.

    What it was kept out for stays there to be read. False, with nothing written, when another version is active by now, or another
    replica is the writer. Raises AppliedError, and nothing of the transaction may stay, when the observation was released or learned by
    now, or set aside with what took it in.
    """
    if not leases.holds(connection, lease):
        return False
    take(connection, Lock.CALIBRATION)
    if active_sequence(connection) != expected_sequence:
        return False
    table = observations.c
    of_row = (table.prediction == row.prediction, table.job == row.job, table.restart == row.restart)
    marked = update(observations).where(*of_row, table.learned == 0, table.released == 0, lines.counts())
    values = {"learned": 1, "kind": row.kind, "released_by": row.released_by, "released_why": row.released_why}
    sequence = add(connection, new)
    if connection.execute(marked.values(released=sequence, **values)).rowcount != 1:
        raise AppliedError
    return True
