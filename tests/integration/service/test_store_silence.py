"""Which nodes owe news of what runs on them; on both databases."""

from __future__ import annotations

from tests.integration.service.rows import a_peak, an_observation, the_writer
from tests.unit.server.stored import a_prediction

from peakgate.server.store.records import EventRow, Silence
from peakgate.server.store.sql import SqlStore

BEGAN, FORGOTTEN, SILENT, NOW = 100, 200, 300, 400


def silence(store: SqlStore) -> Silence:
    """At the moment NOW, with short days."""
    return store.silence(began_us=BEGAN, forgotten_us=FORGOTTEN, silent_us=SILENT)


def seen(store: SqlStore, node: str, last_us: int, **changes: object) -> None:
    """A row of a node, last seen at a moment."""
    store.merge_peaks([a_peak(**({"node": node, "first_us": 150, "last_us": last_us, "peak_us": 150} | changes))])


def test_a_node_whose_job_runs_on_unseen_is_silent(store: SqlStore) -> None:
    """Beside one that reports, one whose job has ended, and one that nothing ran on of late."""
    assert silence(store) == Silence(nodes=0, silent=0)
    seen(store, "reports", NOW)
    seen(store, "ended", 250, ended=1)
    seen(store, "forgotten", 199)
    assert silence(store) == Silence(nodes=2, silent=0)
    seen(store, "silent", 250)
    assert silence(store) == Silence(nodes=3, silent=1)


def test_one_row_that_moves_shows_that_the_agent_lives(store: SqlStore) -> None:
    """An open row that stays behind beside it is one whose end was lost, and no silence; nor is one of the same name on another cluster."""
    seen(store, "n", 250, job="1")
    seen(store, "n", NOW, job="2")
    assert silence(store) == Silence(nodes=1, silent=0)
    seen(store, "n", 250, cluster="other")
    assert silence(store) == Silence(nodes=2, silent=1)


def test_an_end_that_another_told_owes_nothing(store: SqlStore) -> None:
    """A scheduler knows that the job is over, or it was learned from; the start of a job is no end."""
    for node, job in (("told", "1"), ("started", "2"), ("learned", "3")):
        seen(store, node, 250, job=job, prediction=f"predictions/{job}")
    assert silence(store).silent == 3
    for job, event in (("1", "failed"), ("2", "started")):
        store.add_event(
            EventRow(cluster=a_peak().cluster, job=job, restart=0, prediction="", event=event, event_us=260, exit_code=None, origin="slurm")
        )
    store.add_predictions([a_prediction("predictions/3")])
    store.apply([an_observation("predictions/3", job="3")], None, expected_sequence=0, lease=the_writer(store))
    assert silence(store) == Silence(nodes=3, silent=1)


def test_imported_figures_are_of_no_agent(store: SqlStore) -> None:
    """Slurm's accounting, or a Prometheus, is read when somebody likes to."""
    seen(store, "imported", 250, source="slurm")
    seen(store, "scraped", 250, source="prometheus")
    assert silence(store) == Silence(nodes=0, silent=0)


def test_what_began_long_ago_is_not_looked_at(store: SqlStore) -> None:
    """Neither as a node nor as a silent one."""
    seen(store, "old", 250, first_us=BEGAN - 1)
    assert silence(store) == Silence(nodes=0, silent=0)
