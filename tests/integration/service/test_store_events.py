"""Events and observations in the store: merged in any order, and carried over from an older database."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text
from tests.databases import Database
from tests.unit.server.stored import a_prediction

from peakgate.server.store.records import EventRow
from peakgate.server.store.sql import SqlStore, open_store

NODES_AND_SCHEDULER = (
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="started", event_us=5, exit_code=None, origin="slurm"),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="started", event_us=4, exit_code=None, origin="agent"),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="finished", event_us=20, exit_code=None),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="finished", event_us=21, exit_code=0, origin="slurm"),
    EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="cancelled", event_us=19, exit_code=1, signal=15),
)


@pytest.fixture
def store(database: Database) -> Iterator[SqlStore]:
    """A store on a new database that knows one prediction."""
    opened = open_store(database.url)
    opened.add_predictions([a_prediction()])
    yield opened
    opened.close()


def test_events_merge_in_any_order(store: SqlStore, database: Database) -> None:
    """The first start, the last end, what is known of the exit, and the state that all of them together say."""
    found, states = set(), set()
    for order in itertools.islice(itertools.permutations(NODES_AND_SCHEDULER), 0, None, 7):
        database.run("DELETE FROM job_events")
        for event in (*order, order[0]):
            store.add_event(event)
        found.add(tuple(database.rows("SELECT event, event_us, exit_code, signal, origin FROM job_events ORDER BY event")))
        stored = store.prediction("predictions/0")
        states.add(stored.state if stored is not None else None)
    assert found == {(("cancelled", 19, 1, 15, ""), ("finished", 21, 0, None, "slurm"), ("started", 4, None, None, "agent"))}
    assert states == {"cancelled"}


def test_any_exit_status_can_be_told_twice(store: SqlStore, database: Database) -> None:
    """The smallest number that the message can hold is no reason for a database to refuse the event for ever."""
    event = EventRow(cluster="c", job="1", restart=0, prediction="predictions/0", event="failed", event_us=5, exit_code=None)
    for exit_code in (None, -(2**31), -(2**31), None):
        store.add_event(replace(event, exit_code=exit_code))
    assert database.rows("SELECT exit_code FROM job_events") == [(-(2**31),)]


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


def test_an_older_database_keeps_its_observations(database: Database) -> None:
    """What was learned with an upper end was exact, without one a lower one; what was kept out says nothing."""
    database.upgrade_to("0001")
    with database.connected() as connection:
        connection.execute(text("INSERT INTO jobs VALUES ('d', :body)"), {"body": zlib.compress(b"")})
        names = "prediction, created_us, job_digest, job_name, verdict, group_name, required_bytes, device_bytes, bound_bytes, total_bytes"
        values = "'predictions/0', 0, 'd', '', '', 'g', 1, 1, 1, 1, '1', '1', :answer, 'finished'"
        connection.execute(
            text(f"INSERT INTO predictions ({names}, model_version, calibration_version, answer, state) VALUES ({values})"), {"answer": b""}
        )
        rows = (("a", 60, 1, ""), ("b", None, 1, ""), ("c", 60, 0, "FAR_BELOW_PREDICTION"))
        for job, upper, learned, reason in rows:
            row = {"job": job, "upper": upper, "learned": learned, "reason": reason}
            fields = "'predictions/0', :job, 0, 60, 50, 40, :upper, 1, 1, :learned, :reason, ''"
            connection.execute(text(f"INSERT INTO observations VALUES ({fields})"), row)
    store = open_store(database.url)
    found = store.prediction("predictions/0")
    store.close()
    assert found is not None
    kinds = [(row.job, row.kind, row.origin, row.confidence, row.upper_bytes) for row in found.observations]
    assert kinds == [("a", "exact", "agent", "D", 60), ("b", "lower", "agent", "D", None), ("c", "dropped", "agent", "D", 60)]
