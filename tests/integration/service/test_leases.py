"""The lease of the calibration's one writer."""

from __future__ import annotations

from functools import partial

import pytest
from tests.databases import Database
from tests.integration.service.rows import a_version, an_observation, the_writer
from tests.integration.service.test_store_postgresql import all_at_once
from tests.unit.server.stored import a_prediction

from peakgate.server.errors import PeakgateError
from peakgate.server.store import leases
from peakgate.server.store.postgresql import limit_waits
from peakgate.server.store.records import Lease
from peakgate.server.store.sql import SqlStore

on_servers = pytest.mark.parametrize("new_database", ["postgresql", "pgbouncer"], indirect=True)
on_postgresql = pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)

HOLDERS = ("ada", "bob", "cy", "di")
RUN_OUT = "UPDATE leases SET expires_us = expires_us - 10000001"
"""As if 10 s had gone by on the database's clock."""


def take_in_haste(store: SqlStore) -> None:
    """Waits for a lock for a fifth of a second."""
    with store._sessions.writing() as connection:
        limit_waits(connection, lock_seconds=0.2)
        leases.take(connection, "bob", seconds=10, by_force=True)


def stop_in_the_midst(store: SqlStore, lease: Lease) -> None:
    """A write during which another holder is let in."""
    with store._sessions.writing() as stopped:
        limit_waits(stopped, idle_seconds=0.3)
        assert leases.holds(stopped, lease)
        the_writer(store, "bob")  # waits for it
        leases.holds(stopped, lease)


@on_servers
def test_of_many_who_ask_at_once_one_is_let_in(store: SqlStore) -> None:
    """And stays the one while it renews, with the fence that it was given."""
    ask = [partial(store.take_lease, holder, seconds=10) for holder in HOLDERS]
    found = all_at_once(ask)
    assert sorted(found, key=str) == [1, None, None, None]
    assert all_at_once(ask) == found


@on_servers
def test_one_that_has_run_out_is_taken_over_under_a_higher_fence(store: SqlStore, database: Database) -> None:
    """Not before; and the one who had it asks in vain from then on."""
    assert store.take_lease("ada", seconds=10) == 1
    assert store.take_lease("bob", seconds=10) is None
    database.run(RUN_OUT)
    assert store.take_lease("bob", seconds=10) == 2
    assert store.take_lease("ada", seconds=10) is None


@on_servers
def test_its_holder_renews_one_that_has_run_out(store: SqlStore, database: Database) -> None:
    """Nobody has written in between, so that its fence stays."""
    store.take_lease("ada", seconds=10)
    database.run(RUN_OUT)
    assert store.take_lease("ada", seconds=10) == 1
    assert store.take_lease("bob", seconds=10) is None


@on_servers
def test_one_that_was_given_up_is_free_at_once(store: SqlStore) -> None:
    """Nobody else gives it up, and the fence goes on rising."""
    store.take_lease("ada", seconds=10)
    store.give_up_lease("bob")
    assert store.take_lease("bob", seconds=10) is None
    store.give_up_lease("ada")
    assert store.take_lease("bob", seconds=10) == 2


@on_servers
def test_whoever_was_replaced_writes_nothing(store: SqlStore, database: Database) -> None:
    """Neither what was observed, nor a version, nor a switch, nor a deletion: however late it comes back."""
    store.add_predictions([a_prediction(f"predictions/{number}") for number in range(2)])
    ada = the_writer(store, "ada")
    assert store.apply([an_observation("predictions/0")], a_version(), expected_sequence=0, lease=ada)
    assert store.apply([], a_version(), expected_sequence=1, lease=ada)
    bob = the_writer(store, "bob")
    query = "SELECT sequence, version, state, kind, note FROM calibrations ORDER BY sequence"
    want = database.rows(query)
    for lease in (ada, Lease("bob", bob.fence - 1), Lease("ada", bob.fence), Lease("", 0)):
        for new in (None, a_version()):
            assert not store.apply([an_observation("predictions/1")], new, expected_sequence=2, lease=lease)
        assert store.promote(1, note="", lease=lease) is None
        assert store.thin_calibrations(kept_from_us=0, lease=lease) == 0
    assert database.rows(query) == want
    assert database.count("observations") == 1
    assert store.promote(1, note="", lease=bob) is not None


@on_postgresql
def test_nobody_takes_over_in_the_midst_of_a_write(database: Database, store: SqlStore) -> None:
    """The row of the lease is held until the write is committed."""
    ada = the_writer(store, "ada")
    with store._sessions.writing() as connection:
        assert leases.holds(connection, ada)
        with pytest.raises(PeakgateError):
            take_in_haste(store)
    assert the_writer(store, "bob").fence == 2


@on_postgresql
def test_a_write_that_was_stopped_in_its_midst_does_not_hold_the_lease_for_good(database: Database, store: SqlStore) -> None:
    """The database ends a transaction that says nothing more, and with it what it wrote."""
    ada = the_writer(store, "ada")
    with pytest.raises(PeakgateError):
        stop_in_the_midst(store, ada)
    assert store.take_lease("bob", seconds=10) == 2


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
def test_on_sqlite_everybody_may_write(store: SqlStore, database: Database) -> None:
    """In turn: the file is locked while one does, and nothing is said of a lease."""
    assert {store.take_lease(holder, seconds=10) for holder in HOLDERS} == {leases.NO_FENCE}
    assert store.apply([], a_version(), expected_sequence=0, lease=the_writer(store, "ada"))
    assert store.apply([], a_version(), expected_sequence=1, lease=the_writer(store, "bob"))
    store.give_up_lease("ada")
    assert database.count("leases") == 0
