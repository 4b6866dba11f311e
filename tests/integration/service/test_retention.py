"""What agents report is deleted when it is old and has been made use of; what was made of it stays."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.dialects import sqlite
from tests.databases import Database
from tests.integration.service.rows import a_phase, an_observation, the_writer
from tests.unit.server.attempts import a_peak, a_process, of_helper
from tests.unit.server.stored import a_prediction

from peakgate.server.clock import DAY_US
from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.retention import BATCH_ROWS, Forgetter, Retention
from peakgate.server.store.records import EventRow
from peakgate.server.store.retention import old_events, old_peaks
from peakgate.server.store.sql import SqlStore, open_store

NOW_US = 1000 * DAY_US
OLD_US, NEW_US = NOW_US - 31 * DAY_US, NOW_US - 29 * DAY_US
FOR_EVER = "predictions/running"


@pytest.fixture
def store(database: Database) -> Iterator[SqlStore]:
    """A store on a new database with two predictions."""
    opened = open_store(database.url)
    opened.add_predictions([a_prediction(), a_prediction(FOR_EVER)])
    yield opened
    opened.close()


def observe(store: SqlStore) -> None:
    """Makes an observation of predictions/0's attempt, as the learner does."""
    figures = {"observed_bytes": 60_000, "lower_bytes": 52_000, "upper_bytes": 60_000}
    row = an_observation("predictions/0", **figures, finished_us=OLD_US, applied_us=OLD_US, learned=False)
    assert store.apply([row], None, expected_sequence=0, lease=the_writer(store))


def an_event(moment_us: int, event: str = "finished", prediction: str = "predictions/0") -> EventRow:
    """Of the first attempt."""
    return EventRow(cluster="c", job="1", restart=0, prediction=prediction, event=event, event_us=moment_us, exit_code=None)


def forgetter(store: SqlStore, metrics: PrometheusMetrics) -> Forgetter:
    """With the default ages, at a fixed time."""
    return Forgetter(store, Retention(), clock=lambda: NOW_US, metrics=metrics)


def test_rows_of_an_observed_attempt_go_and_its_observation_stays(store: SqlStore, database: Database) -> None:
    """Processes, the whole job's row and phases; the list still shows what was observed."""
    old = {"first_us": OLD_US, "last_us": OLD_US}
    store.merge_peaks([a_peak(**old), a_process(9, **old), of_helper(pid=9, **old)], [a_phase(pid=9, pid_start_ticks=1)])
    observe(store)
    assert store.forget(peaks_before_us=NEW_US, events_before_us=0, limit=BATCH_ROWS) == {"peaks": 3, "job_events": 0}
    assert (database.count("peaks"), database.count("phase_peaks"), database.count("observations")) == (0, 0, 1)
    found = store.prediction("predictions/0")
    assert found is not None
    assert found.observed_device_bytes == 60_000
    assert [row.lower_bytes for row in found.observations] == [52_000]


@pytest.mark.parametrize(
    ("changes", "want_kept"),
    [
        ({"prediction": ""}, 0),
        ({"prediction": "predictions/forged"}, 0),
        ({"prediction": FOR_EVER}, 1),
        ({"prediction": "", "last_us": NEW_US + 1}, 1),
    ],
    ids=["no prediction", "one that nobody knows", "an attempt that was not yet made use of", "still running"],
)
def test_what_can_still_be_made_use_of_stays(changes: dict[str, object], want_kept: int, store: SqlStore, database: Database) -> None:
    """Whatever its age."""
    store.merge_peaks([a_peak(**{"first_us": OLD_US, "last_us": OLD_US} | changes)])
    store.forget(peaks_before_us=NEW_US, events_before_us=0, limit=BATCH_ROWS)
    assert database.count("peaks") == want_kept


def test_events_have_an_age_of_their_own(store: SqlStore, database: Database) -> None:
    """Of an observed attempt, and of a job without a prediction."""
    observe(store)
    for event in (an_event(OLD_US), an_event(NEW_US, "oom"), an_event(OLD_US, prediction=""), an_event(OLD_US, prediction=FOR_EVER)):
        store.add_event(event)
    assert store.forget(peaks_before_us=0, events_before_us=NEW_US, limit=BATCH_ROWS) == {"peaks": 0, "job_events": 2}
    assert database.count("job_events") == 2


def test_a_batch_is_small_and_a_run_takes_as_many_as_it_needs(store: SqlStore, database: Database) -> None:
    """And says how many rows went."""
    rows = [a_process(pid, prediction="", first_us=OLD_US, last_us=OLD_US) for pid in range(1, BATCH_ROWS + 50)]
    store.merge_peaks(rows)
    assert store.forget(peaks_before_us=NEW_US, events_before_us=0, limit=20)["peaks"] == 20
    metrics = PrometheusMetrics()
    assert asyncio.run(forgetter(store, metrics).run()) == {"peaks": BATCH_ROWS + 29, "job_events": 0}
    assert f'peakgate_rows_deleted_total{{table="peaks"}} {float(BATCH_ROWS + 29)}' in metrics.exposition().decode()
    assert database.count("peaks") == 0


def test_old_rows_are_found_by_an_index(tmp_path: Path) -> None:
    """A run on a large table does not read all of it."""
    open_store(f"sqlite:///{tmp_path / 'store.sqlite3'}").close()
    with sqlite3.connect(tmp_path / "store.sqlite3") as connection:
        plans = []
        for query in (old_peaks(5, limit=5), old_events(5, limit=5)):
            text = query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
            plans.append("; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")))
    connection.close()
    assert ["ix_peaks_first_us" in plans[0], "ix_job_events_event_us" in plans[1]] == [True, True]
    assert not any(step.startswith("SCAN ") for plan in plans for step in plan.split("; "))
