"""What PostgreSQL alone is asked: limits on waits, several replicas at once, and a PgBouncer in transaction mode between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text
from tests.bench.programs import ROOT
from tests.databases import Database
from tests.integration.service.rows import a_peak, a_phase, a_version, an_observation, the_writer
from tests.unit.server.stored import a_prediction

from peakgate.server.errors import PeakgateError
from peakgate.server.store.engine import open_engine
from peakgate.server.store.merging import merge
from peakgate.server.store.migrate import upgrade, upgrade_engine
from peakgate.server.store.postgresql import CONNECT_OPTIONS, limit_waits
from peakgate.server.store.session import Sessions
from peakgate.server.store.sql import SqlStore, open_store
from peakgate.server.store.tables import metadata

directly = pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
through_pgbouncer = pytest.mark.parametrize("new_database", ["pgbouncer"], indirect=True)

REPLICAS = 4
Result = TypeVar("Result")


@pytest.fixture
def replicas(database: Database) -> Iterator[list[SqlStore]]:
    """Stores of several servers on one database."""
    upgrade(database.url)
    opened = [open_store(database.url) for _ in range(REPLICAS)]
    yield opened
    for store in opened:
        store.close()


def all_at_once(work: Sequence[Callable[[], Result]]) -> list[Result]:
    """Runs each in a thread of its own, all released at the same moment; raises what any of them raised."""
    gate = threading.Barrier(len(work))

    def run(each: Callable[[], Result]) -> Result:
        gate.wait(10)
        return each()

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(run, work))


def run_limited(sessions: Sessions, statement: str, **limits: float) -> None:
    """Runs a statement with shorter limits than the store has."""
    with sessions.writing() as connection:
        limit_waits(connection, **limits)
        connection.execute(text(statement))


@directly
def test_a_wait_for_a_lock_ends(database: Database) -> None:
    """Somebody holds the table: the call fails with a reason in time, where without a limit it would hang."""
    upgrade(database.url)
    engine = open_engine(database.url)
    with database.connected() as blocker:
        blocker.execute(text("LOCK TABLE peaks IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(PeakgateError, match="lock timeout") as caught:
            run_limited(Sessions(engine), "DELETE FROM peaks", lock_seconds=0.1)
    assert caught.value.reason == "STORE_UNAVAILABLE"
    engine.dispose()


@directly
def test_a_statement_that_takes_too_long_is_ended(database: Database) -> None:
    """And the next transaction on the same connection has its own limits again."""
    engine = open_engine(database.url)
    sessions = Sessions(engine)
    with pytest.raises(PeakgateError, match="statement timeout"):
        run_limited(sessions, "SELECT pg_sleep(5)", statement_seconds=0.05)
    with sessions.reading() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "30s"
        assert connection.execute(text("SHOW lock_timeout")).scalar_one() == "5s"
    engine.dispose()


@directly
def test_a_store_that_is_closed_under_a_thread_leaves_no_connection(database: Database) -> None:
    """A thread that is in the database cannot be stopped: what it holds is closed when it is done."""
    sessions = Sessions(open_engine(database.url))
    with sessions.reading():
        sessions.close()
    assert database.rows("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") == [(0,)]


END_ALL = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@directly
def test_a_connection_that_was_lost_is_replaced(replicas: list[SqlStore], database: Database) -> None:
    """As after a restart of the database, or of PgBouncer: whoever was in a transaction is told, and the next call gets through."""
    store = replicas[0]
    store.merge_peaks([a_peak()])
    database.run(END_ALL)
    store.merge_peaks([a_peak(peak_bytes=70)])
    with pytest.raises(PeakgateError) as caught:
        lose_connection_while_writing(store, database)
    assert caught.value.reason == "STORE_UNAVAILABLE"
    store.merge_peaks([a_peak(peak_bytes=71)])
    assert database.rows("SELECT peak_bytes FROM peaks") == [(71,)]


def lose_connection_while_writing(store: SqlStore, database: Database) -> None:
    """The server ends the connection between two statements of a transaction."""
    with store._sessions.writing() as connection:
        merge(connection, [a_peak(peak_bytes=99)])
        database.run(END_ALL)
        merge(connection, [a_peak(peak_bytes=100)])


@directly
def test_a_reader_sees_one_state(replicas: list[SqlStore]) -> None:
    """What another commits between two statements of one reading transaction is not seen in it, and nothing is written there."""
    first, second = replicas[:2]
    with first._sessions.reading() as connection:
        before = connection.execute(text("SELECT count(*) FROM peaks")).scalar_one()
        second.merge_peaks([a_peak()])
        assert connection.execute(text("SELECT count(*) FROM peaks")).scalar_one() == before == 0
    with pytest.raises(PeakgateError, match="read-only"), first._sessions.reading() as connection:
        connection.execute(text("DELETE FROM peaks"))


@directly
def test_replicas_that_merge_the_same_rows_never_lock_each_other_out(replicas: list[SqlStore]) -> None:
    """Each takes the rows in another order, many times over: no deadlock, and the highest figure of each key stays."""
    names = [f"predictions/{number}" for number in range(12)]
    replicas[0].add_predictions([a_prediction(name) for name in names])

    def merge(index: int) -> None:
        for turn in range(30):
            order = names[(turn * (index + 1)) % 12 :] + names[: (turn * (index + 1)) % 12]
            rows = [a_peak(prediction=name, peak_bytes=1 + index * 30 + turn) for name in (order if index % 2 else order[::-1])]
            replicas[index].merge_peaks(rows)

    all_at_once([partial(merge, index) for index in range(REPLICAS)])
    found = replicas[0].predictions(limit=99, before=None, observed_only=True)
    assert [each.observed_device_bytes for each in found] == [REPLICAS * 30] * len(names)


@directly
def test_of_several_replicas_one_moves_the_calibration_on(replicas: list[SqlStore]) -> None:
    """All of them learned from the same version: one is taken, the others are told, and nobody's version is lost."""
    replicas[0].add_predictions([a_prediction(f"predictions/{number}") for number in range(REPLICAS)])

    lease = the_writer(replicas[0])

    def apply(index: int) -> bool:
        return replicas[index].apply([an_observation(f"predictions/{index}")], a_version(str(index)), expected_sequence=0, lease=lease)

    assert sorted(all_at_once([partial(apply, index) for index in range(REPLICAS)])) == [False, False, False, True]
    versions = replicas[0].calibrations(limit=9, before_sequence=None)
    assert [row.state for row in versions] == ["active"]


@directly
def test_a_job_stays_while_a_prediction_of_it_is_stored(replicas: list[SqlStore]) -> None:
    """One replica deletes jobs without predictions while others store predictions of the same job: none fails, and what follows works."""

    def add(index: int) -> None:
        for turn in range(20):
            replicas[index].add_predictions([a_prediction(f"predictions/{index}-{turn}", created_us=turn)])

    def expire() -> None:
        for _ in range(20):
            replicas[0].expire(10**9)

    work: list[Callable[[], None]] = [expire, *(partial(add, index) for index in range(1, REPLICAS))]
    all_at_once(work)
    replicas[1].add_predictions([a_prediction("predictions/last", created_us=10**9)])
    replicas[0].expire(10**9)
    assert [each.row.prediction for each in replicas[0].predictions(limit=100, before=None, observed_only=False)] == ["predictions/last"]


@directly
def test_replicas_that_start_together_migrate_once(database: Database) -> None:
    """The later ones wait for the first and find it done."""
    assert len(set(all_at_once([lambda: upgrade(database.url) for _ in range(REPLICAS)]))) == 1
    assert database.count("alembic_version") == 1


@directly
def test_a_migration_that_gets_no_lock_changes_nothing(database: Database) -> None:
    """It says what to do; when the table is free again it goes through."""
    upgrade(database.url)
    database.run("UPDATE alembic_version SET version_num = '0001'")
    before = database.rows("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2")
    engine = open_engine(database.url)
    with database.connected() as blocker:
        blocker.execute(text("SELECT count(*) FROM peaks"))  # a reader that does not end its transaction
        with pytest.raises(PeakgateError, match=r"nothing was changed.*lock timeout.*peakgate db upgrade"):
            upgrade_engine(engine, lock_seconds=0.1)
    after = database.rows("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2")
    assert (after, database.rows("SELECT version_num FROM alembic_version")) == (before, [("0001",)])
    engine.dispose()


@through_pgbouncer
def test_everything_works_through_pgbouncer(database: Database) -> None:
    """Migrations, stores, merges and reads of several replicas at once, each statement often enough to be prepared if we let it."""
    upgrade(database.url)
    stores = [open_store(database.url) for _ in range(REPLICAS)]
    names = [f"predictions/{number}" for number in range(8)]

    def work(index: int) -> None:
        for turn in range(12):
            stores[index].add_predictions([a_prediction(name) for name in names])
            stores[index].merge_peaks([a_peak(prediction=name, peak_bytes=1 + turn, gpu_uuid=f"GPU-{index}") for name in names])
            assert stores[index].prediction(names[turn % 8]) is not None
            stores[index].due(names=names, settled_before_us=10**9)

    all_at_once([partial(work, index) for index in range(REPLICAS)])
    found = stores[0].predictions(limit=99, before=None, observed_only=True)
    assert [each.observed_device_bytes for each in found] == [12] * len(names)
    for store in stores:
        store.close()


@through_pgbouncer
def test_limits_end_with_their_transaction_behind_pgbouncer_too(database: Database) -> None:
    """Another client that gets the same connection of the server finds none of our settings."""
    import psycopg

    store = open_store(database.url)
    for _ in range(4):
        store.ping()
    with psycopg.connect(database.url, prepare_threshold=None) as other:
        assert other.execute("SHOW lock_timeout").fetchone() == ("0",)
    store.close()


@through_pgbouncer
def test_pgbouncer_refuses_settings_of_a_session(database: Database) -> None:
    """Why the limits are stated in each transaction and not once a connection."""
    import psycopg

    assert "options" not in CONNECT_OPTIONS
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter: options"):
        psycopg.connect(database.url, options="-c lock_timeout=5s")


@directly
def test_the_tables_that_grow_can_be_partitioned_by_time(replicas: list[SqlStore], database: Database) -> None:
    """The recipe turns them over with their rows, keys and indexes; then each row lies in the month of its prediction's name, merges as
    before, and a month is dropped at once."""
    store = replicas[0]
    store.add_predictions([a_prediction("predictions/0")])
    store.merge_peaks([a_peak(), a_peak(prediction="")], [a_phase()])
    database.run_script((ROOT / "deploy" / "postgresql" / "partition.sql").read_text())
    database.run("SELECT peakgate_add_month('peaks', DATE '2030-01-01')", "SELECT peakgate_add_month('peaks', DATE '2030-02-01')")
    names = [name_at(2030, month) for month in (1, 2)]
    store.add_predictions([a_prediction(name) for name in names])
    for peak_bytes in (7, 9):
        store.merge_peaks([a_peak(prediction=name, peak_bytes=peak_bytes, ended=1) for name in (*names, "predictions/0", "")], [a_phase()])
    parts = database.rows("SELECT tableoid::regclass::text, prediction, peak_bytes FROM peaks ORDER BY 1, 2")
    want_default = [("peaks_default", "", 60), ("peaks_default", "predictions/0", 60)]
    assert parts == [("peaks_2030_01", names[0], 9), ("peaks_2030_02", names[1], 9), *want_default]
    assert len(store.due(names=None, settled_before_us=0)) == 3
    assert store.apply([an_observation("predictions/0")], None, expected_sequence=0, lease=the_writer(store))
    assert not store.apply([an_observation("predictions/0")], None, expected_sequence=0, lease=the_writer(store))
    database.run("DROP TABLE peaks_2030_01")
    assert database.count("peaks") == 3
    with database.connected() as connection:
        options = {"include_object": lambda _, name, kind, *__: kind != "table" or name in metadata.tables}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


def name_at(year: int, month: int) -> str:
    """A prediction's name from the middle of a month, formed as the service forms them."""
    milliseconds = int(datetime(year, month, 15, tzinfo=UTC).timestamp() * 1000)
    return f"predictions/{milliseconds << 80 | 7 << 76:032x}"
