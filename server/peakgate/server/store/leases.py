"""Who may write what replicas share: one row a lease, judged by the database's clock, so that no two clocks are compared.

On SQLite there is no row: a server holds the file (lock.py), and whoever writes beside it is alone while it does (BEGIN IMMEDIATE).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, ColumnElement, Connection, case, cast, func, or_, select, update
from sqlalchemy.dialects import postgresql

from peakgate.server.store.records import Lease
from peakgate.server.store.tables import leases

CALIBRATION = "calibration"
"""The lease of the margin's one writer."""

NO_FENCE = 0
"""The fence of a database that needs none."""


def take(connection: Connection, holder: str, *, seconds: float, by_force: bool = False) -> int | None:
    """Takes the lease, or renews it, for so many seconds. Returns its fence; None while another holder has it.

    `by_force` takes it from whoever has it. The fence rises with each change of the holder, so that what an earlier one still
    writes is refused, however late it comes.
    """
    mine = leases.c.holder == holder
    new = postgresql.insert(leases).values(name=CALIBRATION, holder=holder, fence=1, expires_us=_now_us() + round(seconds * 1e6))
    taken = new.on_conflict_do_update(
        index_elements=[leases.c.name],
        set_={
            "holder": new.excluded.holder,
            "fence": case((mine, leases.c.fence), else_=leases.c.fence + 1),
            "expires_us": _now_us() + round(seconds * 1e6),
        },
        where=None if by_force else or_(mine, leases.c.expires_us < _now_us()),
    )
    return connection.execute(taken.returning(leases.c.fence)).scalar()


def give_up(connection: Connection, holder: str) -> None:
    """Leaves the lease to the next one who asks. The row stays, because its fence must go on rising."""
    connection.execute(update(leases).where(leases.c.name == CALIBRATION, leases.c.holder == holder).values(holder="", expires_us=0))


def holds(connection: Connection, lease: Lease) -> bool:
    """Whether this is the newest holder, which then nobody can change before the transaction ends.

    One whose time has run out still is, as long as nobody took over: nothing was written in between.
    """
    if connection.dialect.name != "postgresql":
        return True
    row = select(leases.c.holder, leases.c.fence).where(leases.c.name == CALIBRATION).with_for_update(read=True)
    return connection.execute(row).first() == (lease.holder, lease.fence)


def _now_us() -> ColumnElement[int]:
    """The database's clock at this moment, and not at the begin of the transaction."""
    return cast(func.extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger)
