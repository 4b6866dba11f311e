"""The store on real databases of both kinds, and what holds for a SQLite file alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect, text
from tests.databases import Database
from tests.integration.service.rows import a_peak, a_phase, a_version, an_observation, the_writer
from tests.unit.server.stored import a_prediction

from peakgate.server.errors import PeakgateError
from peakgate.server.store import engine as engine_module
from peakgate.server.store import migrate, predictions
from peakgate.server.store.engine import open_engine, refuse_network_file_system, sqlite_file
from peakgate.server.store.migrate import upgrade
from peakgate.server.store.migrations.versions.v0004_calibration import ADDED
from peakgate.server.store.records import EventRow, PeakRow
from peakgate.server.store.sql import SqlStore
from peakgate.server.store.tables import metadata, peaks

HOUR_US = 3_600_000_000


NEW_IN_0002 = {"step", "steps_done", "longest_sequence", "alloc_retries", "ooms", "longest_gap_us", "xid"}


def test_the_migrations_make_the_tables(database: Database) -> None:
    """What the code declares and what a database gets are the same; a second run changes nothing."""
    assert upgrade(database.url) == upgrade(database.url)
    with database.connected() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_server_default": True}), metadata) == []


def test_a_database_of_a_newer_version_is_refused(database: Database) -> None:
    """Older code would misread it."""
    upgrade(database.url)
    database.run("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(PeakgateError, match="newer version"):
        upgrade(database.url)


def columns_of(database: Database) -> dict[str, set[str]]:
    """The tables and their columns, as they are."""
    with database.connected() as connection:
        inspector = inspect(connection)
        return {name: {column["name"] for column in inspector.get_columns(name)} for name in inspector.get_table_names()}


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
def test_a_migration_that_cannot_write_the_file_changes_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else writes: it gives up in time, and says what to do."""
    monkeypatch.setattr(engine_module, "BUSY_SECONDS", 0.1)
    upgrade(database.url)
    database.run("UPDATE alembic_version SET version_num = '0001'")
    before = columns_of(database)
    with database.connected() as blocker:
        blocker.execute(text("UPDATE alembic_version SET version_num = version_num"))
        with pytest.raises(PeakgateError, match=r"nothing was changed.*locked.*peakgate db upgrade"):
            upgrade(database.url)
    assert (columns_of(database), database.rows("SELECT version_num FROM alembic_version")) == (before, [("0001",)])


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
def test_a_migration_of_a_file_ends_in_time_and_changes_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is held by SQLite's own look at the clock between operations."""
    monkeypatch.setattr(migrate, "OPERATIONS_BETWEEN_LOOKS", 1)
    engine = open_engine(database.url)
    with pytest.raises(PeakgateError, match=r"nothing was changed.*interrupted"):
        migrate.upgrade_engine(engine, statement_seconds=0.0)
    assert columns_of(database) == {}
    assert migrate.upgrade_engine(engine)
    engine.dispose()


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
def test_a_write_ahead_log_is_used(database: Database, store: SqlStore) -> None:
    """Readers of a file do not wait for the writer."""
    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    store.ping()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "lustre", "fuse.sshfs"])
def test_a_network_file_system_is_refused(kind: str, tmp_path: Path) -> None:
    """By the mount that holds the file, with what to do."""
    mounts = f"disk / ext4 rw 0 0\nserver:/home {tmp_path} {kind} rw 0 0\n"
    with pytest.raises(PeakgateError, match=r"network file system.*local disk, or use PostgreSQL"):
        refuse_network_file_system(tmp_path / "deep" / "store.sqlite3", mounts)


def test_a_local_disk_below_a_network_mount_is_taken(tmp_path: Path) -> None:
    """The deepest mount decides; a mount whose name only begins alike does not count."""
    (tmp_path / "local").mkdir()
    mounts = f"server:/ {tmp_path} nfs4 rw 0 0\ndisk {tmp_path}/local ext4 rw 0 0\nserver:/ {tmp_path}/loc nfs rw 0 0\n"
    path = tmp_path / "local" / "store.sqlite3"
    assert sqlite_file(f"sqlite:///{path}", mounts=mounts) == path


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/name", "no url"])
def test_a_url_that_would_lose_data_or_is_not_supported_is_refused(url: str) -> None:
    """With what to use instead."""
    with pytest.raises(PeakgateError, match="database: "):
        open_engine(url)


def test_unused_predictions_expire_and_used_ones_stay(store: SqlStore) -> None:
    """A peak or an event binds a prediction to a job; jobs that no prediction names go too."""
    store.add_predictions([a_prediction(f"predictions/{number}", created_us=number) for number in range(4)])
    store.merge_peaks([a_peak(prediction="predictions/0")])
    store.add_event(EventRow(cluster="c", job="1", restart=0, prediction="predictions/1", event="started", event_us=0, exit_code=None))
    assert store.expire(3) == 1
    kept = [each.row.prediction for each in store.predictions(limit=9, before=None, observed_only=False)]
    assert kept == ["predictions/3", "predictions/1", "predictions/0"]


def test_a_job_goes_with_its_last_prediction(store: SqlStore, database: Database) -> None:
    """And no more of them than one transaction should delete, the oldest first."""
    store.add_predictions([a_prediction(f"predictions/{number}", created_us=number) for number in range(3)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "EXPIRED_AT_ONCE", 2)
        assert (store.expire(9), database.count("jobs")) == (2, 1)
        assert database.rows("SELECT prediction FROM predictions") == [("predictions/2",)]
        assert (store.expire(9), database.count("jobs")) == (1, 0)


def test_what_expires_is_found_by_an_index(store: SqlStore, database: Database) -> None:
    """Every ten minutes: among millions of predictions that jobs use, those that none uses are not searched for."""
    explain = "EXPLAIN QUERY PLAN" if database.kind == "sqlite" else "EXPLAIN"
    with database.connected() as connection:
        query = predictions.unused(9).compile(connection.engine, compile_kwargs={"literal_binds": True})
        plan = " ".join(str(row) for row in connection.exec_driver_sql(f"{explain} {query}"))
    assert "ix_predictions_unused" in plan


def test_a_repeated_row_or_request_changes_nothing(store: SqlStore) -> None:
    """A batch whose commit was not seen is written again."""
    rows = [a_prediction("predictions/0", request_id="r"), a_prediction("predictions/1", request_id="r")]
    store.add_predictions(rows)
    store.add_predictions(rows)
    found = store.by_request("r")
    assert found is not None
    assert found.row == rows[0]
    assert store.prediction("predictions/1") is None
    assert list(store.request_ids()) == ["r"]


def test_peaks_are_merged_field_by_field(store: SqlStore, database: Database) -> None:
    """The maximum with its moment, the first and last time, flags united, an end never taken back."""
    store.merge_peaks([a_peak(peak_bytes=70, peak_us=7, first_us=6, last_us=8, flags=1, ended=1, samples=3)])
    store.merge_peaks([a_peak(peak_bytes=50, peak_us=9, first_us=4, last_us=9, flags=4, samples=2)])
    columns = "peak_bytes, peak_us, first_us, last_us, flags, ended, source, samples"
    assert database.rows(f"SELECT {columns} FROM peaks") == [(70, 7, 4, 9, 5, 1, "sampled", 3)]


def test_sources_and_steps_stay_apart(store: SqlStore) -> None:
    """What the driver, NVML and torch say of one process are three figures; so are those of two trainings."""
    store.add_predictions([a_prediction("predictions/0")])
    kinds = [(source, step) for source in ("accounting", "sampled", "torch") for step in ("0", "1")]
    store.merge_peaks([a_peak(source=source, step=step, ended=1) for source, step in kinds])
    (attempt,) = store.due(names=None, settled_before_us=HOUR_US)
    assert sorted((row.source, row.step) for row in attempt.peaks) == kinds


def test_peaks_by_phase_are_merged_figure_by_figure(store: SqlStore, database: Database) -> None:
    """A repeat or an older figure changes nothing."""
    store.merge_peaks([a_peak()], [a_phase(allocated_bytes=5, reserved_bytes=6)])
    store.merge_peaks([a_peak()], [a_phase(allocated_bytes=4, reserved_bytes=9), a_phase(phase="backward")])
    found = database.rows("SELECT phase, allocated_bytes, reserved_bytes FROM phase_peaks ORDER BY phase")
    assert found == [("backward", 1, 2), ("forward", 5, 9)]


def test_a_database_of_the_first_version_keeps_its_peaks(database: Database) -> None:
    """An upgrade adds the new columns to rows that are there."""
    database.upgrade_to("0001")
    with database.connected() as connection:
        names = [column.name for column in peaks.columns if column.name not in NEW_IN_0002]
        row = {name: getattr(a_peak(), name) for name in names}
        connection.execute(text(f"INSERT INTO peaks ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"), row)
    upgrade(database.url)
    names = [column.name for column in peaks.columns]
    assert database.rows(f"SELECT {', '.join(names)} FROM peaks") == [tuple(getattr(a_peak(), name) for name in names)]


PEAKS = st.builds(
    a_peak,
    gpu_uuid=st.sampled_from(["GPU-0", "GPU-1"]),
    pid=st.integers(0, 2),
    peak_bytes=st.integers(1, 5),
    last_us=st.integers(0, 5),
    first_us=st.integers(0, 5),
    flags=st.integers(0, 3),
    ended=st.integers(0, 1),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(PEAKS, min_size=1, max_size=8), data=st.data())
def test_order_duplicates_and_batches_do_not_matter(batch: list[PeakRow], data: st.DataObject, database: Database, store: SqlStore) -> None:
    """Delivered in any order, twice, in batches or alone, and one key more than once in a batch: the same rows."""
    shuffled = data.draw(st.permutations(batch + batch))
    found = []
    for batches in ([batch], [[row] for row in shuffled], [shuffled]):
        database.run("DELETE FROM peaks")
        for rows in batches:
            store.merge_peaks(rows)
        found.append(database.rows("SELECT * FROM peaks ORDER BY gpu_uuid, pid"))
    assert found[0] == found[1] == found[2]


def test_an_attempt_is_applied_once(store: SqlStore) -> None:
    """A second time is told, with or without a new version, and no version is stored."""
    store.add_predictions([a_prediction("predictions/0")])
    assert store.apply([an_observation("predictions/0")], a_version("1"), expected_sequence=0, lease=the_writer(store))
    active = store.active_calibration()
    assert active is not None
    for new in (None, a_version("2")):
        assert not store.apply([an_observation("predictions/0")], new, expected_sequence=active.sequence, lease=the_writer(store))
    assert store.active_calibration() == active


def test_a_repeated_event_does_not_take_a_state_back(store: SqlStore) -> None:
    """Started, ended, and the start once more."""
    store.add_predictions([a_prediction("predictions/0")])
    for event in ("started", "finished", "started"):
        store.add_event(EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event=event, event_us=1, exit_code=None))
    found = store.prediction("predictions/0")
    assert found is not None
    assert found.state == "finished"


def test_the_list_of_ended_attempts_stays_short(store: SqlStore, database: Database) -> None:
    """What was applied leaves it, also when its last rows come once more; what nobody knows leaves it after a while."""
    store.add_predictions([a_prediction("predictions/0")])
    ended = [a_peak(ended=1), a_peak(prediction="predictions/forged", ended=1), a_peak(prediction="", ended=1), a_peak(pid=7, ended=1)]
    store.merge_peaks(ended)
    store.add_event(EventRow(cluster="c", job="2", restart=0, prediction="predictions/0", event="oom", event_us=4, exit_code=None))
    assert [(each.job, each.event) for each in store.due(names=None, settled_before_us=0)] == [("1", ""), ("2", "oom")][::-1]
    assert store.apply([an_observation("predictions/0")], None, expected_sequence=0, lease=the_writer(store))
    store.merge_peaks(ended)
    assert [each.job for each in store.due(names=None, settled_before_us=0)] == ["2"]
    query = "SELECT prediction, job FROM ended_attempts ORDER BY prediction, job"
    assert database.rows(query) == [("predictions/0", "1"), ("predictions/0", "2"), ("predictions/forged", "1")]
    store.expire(5)
    assert database.rows(query) == [("predictions/0", "2"), ("predictions/forged", "1")]
    store.expire(6)
    assert database.rows(query) == [("predictions/0", "2")]


def test_an_upgrade_lists_what_had_ended(database: Database) -> None:
    """Attempts that the version before had not learned from are found; the applied one and the running one are not."""
    upgrade(database.url)
    store = SqlStore(open_engine(database.url))
    store.add_predictions([a_prediction(f"predictions/{number}") for number in range(4)])
    store.merge_peaks([a_peak(prediction=f"predictions/{number}", ended=number % 2) for number in range(4)])
    store.add_event(EventRow(cluster="c", job="1", restart=0, prediction="predictions/2", event="failed", event_us=9, exit_code=1))
    store.apply([an_observation("predictions/1")], None, expected_sequence=0, lease=the_writer(store))
    indices = ("DROP INDEX ix_predictions_unused", "DROP INDEX ix_observations_sequence")
    columns = (f"ALTER TABLE {table} DROP COLUMN {name}" for table, name, _, _ in ADDED)
    later = ("DROP TABLE ended_attempts", "DROP TABLE leases", "DROP TABLE tries")
    database.run(*later, *indices, *columns, "UPDATE alembic_version SET version_num = '0002'")
    upgrade(database.url)
    assert [each.prediction for each in store.due(names=None, settled_before_us=0)] == ["predictions/3", "predictions/2"]
    store.close()


def test_a_gpu_that_falls_silent_is_waited_for(store: SqlStore) -> None:
    """One GPU of the job has ended, the other says nothing: only after the wait is the attempt due."""
    store.add_predictions([a_prediction("predictions/0")])
    store.merge_peaks([a_peak(ended=1, last_us=HOUR_US), a_peak(gpu_uuid="GPU-1", last_us=HOUR_US)])
    assert store.due(names=None, settled_before_us=HOUR_US) == []
    due = store.due(names=None, settled_before_us=HOUR_US + 1)
    assert [(attempt.prediction, len(attempt.peaks)) for attempt in due] == [("predictions/0", 2)]


def test_a_broken_database_is_an_error_with_a_reason(database: Database, store: SqlStore) -> None:
    """STORE_UNAVAILABLE, whatever SQLAlchemy raised."""
    database.run("DROP TABLE peaks")
    with pytest.raises(PeakgateError) as caught:
        store.merge_peaks([a_peak()])
    assert caught.value.reason == "STORE_UNAVAILABLE"


def test_a_record_has_every_column_of_its_table() -> None:
    """A column that is added on one side only is noticed."""
    assert {field.name for field in dataclasses.fields(PeakRow)} == {column.name for column in peaks.columns}


@pytest.mark.parametrize(("origin", "want_waits"), [("agent", True), ("slurm", False), ("", False)])
def test_an_end_that_only_agents_told_waits_for_another_program(store: SqlStore, origin: str, want_waits: bool) -> None:
    """An empty GPU may be a pause of the job; a scheduler knows better."""
    store.add_predictions([a_prediction("predictions/0")])
    store.merge_peaks([a_peak(ended=1, last_us=HOUR_US)])
    an_end = EventRow(
        cluster="c", job="1", restart=0, prediction="predictions/0", event="finished", event_us=HOUR_US, exit_code=None, origin=origin
    )
    store.add_event(an_end)
    found = [store.due(names=None, settled_before_us=0, quiet_before_us=HOUR_US + after) for after in (0, 1)]
    assert [len(attempts) for attempts in found] == [0 if want_waits else 1, 1]


def test_a_second_program_within_the_wait_is_part_of_the_attempt(store: SqlStore) -> None:
    """Its higher peak counts, and nothing is learned before it has ended."""
    store.add_predictions([a_prediction("predictions/0")])
    store.merge_peaks([a_peak(ended=1, last_us=HOUR_US)])
    an_end = EventRow(
        cluster="c", job="1", restart=0, prediction="predictions/0", event="finished", event_us=HOUR_US, exit_code=None, origin="agent"
    )
    store.add_event(an_end)
    store.merge_peaks([a_peak(step="2", peak_bytes=70, last_us=HOUR_US + 5)])
    assert store.due(names=None, settled_before_us=0, quiet_before_us=HOUR_US + 9) == []
    store.merge_peaks([a_peak(step="2", peak_bytes=70, ended=1, last_us=HOUR_US + 7)])
    (attempt,) = store.due(names=None, settled_before_us=0, quiet_before_us=HOUR_US + 9)
    assert max(row.peak_bytes for row in attempt.peaks) == 70
