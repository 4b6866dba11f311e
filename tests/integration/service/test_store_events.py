"""Events and observations in the store: merged in any order, and carried over from an older database."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text
from tests.unit.server.stored import a_prediction

from peakgate.server.store.engine import open_engine
from peakgate.server.store.migrate import configuration
from peakgate.server.store.records import EventRow
from peakgate.server.store.session import Sessions
from peakgate.server.store.sql import SqlStore, open_store

NODES_AND_SCHEDULER = (
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="started", event_us=5, exit_code=None, origin="slurm"),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="started", event_us=4, exit_code=None, origin="agent"),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="finished", event_us=20, exit_code=None),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="finished", event_us=21, exit_code=0, origin="slurm"),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="cancelled", event_us=19, exit_code=1, signal=15),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A store on a new file that knows one prediction."""
    opened = open_store(f"sqlite:///{tmp_path / 'store.sqlite3'}")
    opened.add_predictions([a_prediction()])
    yield opened
    opened.close()


def events(tmp_path: Path) -> list[tuple[object, ...]]:
    """What is stored of events."""
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as connection:
        columns = "event, event_us, exit_code, signal, origin"
        return connection.execute(f"SELECT {columns} FROM job_events ORDER BY event").fetchall()


def test_events_merge_in_any_order(store: SqlStore, tmp_path: Path) -> None:
    """The first start, the last end, what is known of the exit, and the state that all of them together say."""
    found, states = set(), set()
    for order in itertools.islice(itertools.permutations(NODES_AND_SCHEDULER), 0, None, 7):
        with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as connection, connection:
            connection.execute("DELETE FROM job_events")
        for event in (*order, order[0]):
            store.add_event(event)
        found.add(tuple(events(tmp_path)))
        stored = store.prediction("predictions/0")
        states.add(stored.state if stored is not None else None)
    assert found == {(("cancelled", 19, 1, 15, ""), ("finished", 21, 0, None, "slurm"), ("started", 4, None, None, "agent"))}
    assert states == {"cancelled"}


def test_the_state_is_that_of_the_newest_attempt(store: SqlStore) -> None:
    """A restart after an out-of-memory is running, then finished, whatever is told last."""
    first = EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="oom", event_us=10, exit_code=None)
    again, done = replace(first, restart=1, event="started", event_us=12), replace(first, restart=1, event="finished", event_us=30)
    want_states = {(first,): "oom", (again, first): "running", (done, first, again): "finished", (first, done): "finished"}
    for number, (order, want_state) in enumerate(want_states.items()):
        name = f"predictions/{number + 1}"
        store.add_predictions([a_prediction(name)])
        for event in order:
            store.add_event(replace(event, prediction=name))
        found = store.prediction(name)
        assert found is not None
        assert found.state == want_state


def test_an_older_database_keeps_its_observations(tmp_path: Path) -> None:
    """What was learned with an upper end was exact, without one a lower one; what was kept out says nothing."""
    engine = open_engine(f"sqlite:///{tmp_path / 'store.sqlite3'}")
    with Sessions(engine).writing() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(text("INSERT INTO jobs VALUES ('d', x'789c030000000001')"))
        names = "prediction, created_us, job_digest, job_name, verdict, group_name, required_bytes, device_bytes, bound_bytes, total_bytes"
        values = "'predictions/0', 0, 'd', '', '', 'g', 1, 1, 1, 1, '1', '1', x'', 'finished'"
        connection.execute(text(f"INSERT INTO predictions ({names}, model_version, calibration_version, answer, state) VALUES ({values})"))
        rows = (("a", 60, 1, ""), ("b", None, 1, ""), ("c", 60, 0, "FAR_BELOW_PREDICTION"))
        for job, upper, learned, reason in rows:
            row = {"job": job, "upper": upper, "learned": learned, "reason": reason}
            fields = "'predictions/0', :job, 0, 60, 50, 40, :upper, 1, 1, :learned, :reason, ''"
            connection.execute(text(f"INSERT INTO observations VALUES ({fields})"), row)
    engine.dispose()
    store = open_store(f"sqlite:///{tmp_path / 'store.sqlite3'}")
    found = store.prediction("predictions/0")
    store.close()
    assert found is not None
    kinds = [(row.job, row.kind, row.origin, row.confidence, row.upper_bytes) for row in found.observations]
    assert kinds == [("a", "exact", "agent", "D", 60), ("b", "lower", "agent", "D", None), ("c", "dropped", "agent", "D", 60)]
