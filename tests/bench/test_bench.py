"""A small form of the bench: the real command and the real service, held to a multiple of the bars."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import structlog.testing
from tests.bench import ingest, sustained
from tests.bench.accuracy import answered_rows, traced_sets
from tests.bench.bounds import BOUNDS, suite_bar
from tests.bench.coldstart import cold_start_seconds
from tests.bench.helping import helper_step_seconds
from tests.bench.load import Options, Seen
from tests.bench.overhead import KINDS, Overhead, Sample, measure_overhead, report
from tests.bench.programs import ROOT
from tests.bench.reading import slowest_cases
from tests.bench.sampling import resident_mib, sampler_cost
from tests.bench.simulating import ATTEMPTS, simulation_seconds
from tests.bench.suggesting import answer_seconds, memory_mib, plans_seconds
from tests.bench.walking import PLAIN, new_shape_seconds, new_structure_seconds, replay_seconds
from tests.databases import Database
from tests.postgres import Cluster

from peakgate.server.store.sql import open_store


def least(name: str) -> float:
    """The bar of a figure that is to be high, with the same room."""
    return float(BOUNDS[name]["bar"]) / float(BOUNDS["suite_factor"])


EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def test_a_prediction_costs_so_many_empty_calls(tmp_path: Path) -> None:
    """Server CPU of a Predict over an empty echo stays within the bars, for a job seen before and for one never seen."""
    bars = {kind: suite_bar(f"{kind}_predict_ratio") for kind in ("warm", "fresh")}
    found = measure_overhead(tmp_path, rounds=3, calls=1200, fresh_calls=100)
    assert {kind: found.ratio(kind) <= limit for kind, limit in bars.items()} == {"warm": True, "fresh": True}, report(found, bars)


def test_the_command_starts_fast() -> None:
    """`peakgate predict FILE` without a server answers within the bar."""
    assert cold_start_seconds(EXAMPLES[0]) <= suite_bar("cold_start_seconds")


def test_a_new_shape_is_evaluated_and_a_new_structure_is_walked() -> None:
    """CPU time of `memory.predict` for one GPU; that of a structure beside that of a shape, as a ratio of one run."""
    shape, structure = new_shape_seconds(PLAIN), new_structure_seconds(PLAIN)
    assert shape <= suite_bar("new_shape_seconds")
    assert structure / shape <= suite_bar("structure_over_shape_ratio")


def test_a_replay_of_an_8b_step_is_fast() -> None:
    """The plain one, and the one that searches the smallest card."""
    plain, whole = replay_seconds(PLAIN)
    assert plain <= suite_bar("plain_replay_seconds")
    assert whole <= suite_bar("bisected_replay_seconds")


def test_fifty_thousand_plans_are_evaluated_at_once() -> None:
    """Worst rank and step time of each, CPU time."""
    plans, seconds = plans_seconds()
    assert plans >= 50_000
    assert seconds * 50_000 / plans <= suite_bar("fifty_thousand_plans_seconds")


def test_a_rejected_job_is_told_what_to_change_in_time() -> None:
    """CPU time of the whole answer, by a service that has seen such a job; one that has not takes longer."""
    warm, cold = answer_seconds(ROOT / "examples" / "gpt2-xl-oom.yaml")
    assert warm <= suite_bar("rejected_predict_seconds")
    assert warm < cold


def test_a_search_takes_little_memory() -> None:
    """Beside a process that has answered a job; the narrow search."""
    assert memory_mib(thorough=False) <= float(BOUNDS["suggest_memory_mib"]["bar"])


def test_a_launch_is_read_at_once() -> None:
    """The slowest case of any format."""
    assert max(seconds for _, _, seconds in slowest_cases()) <= suite_bar("reading_seconds")


def test_a_step_costs_a_training_microseconds() -> None:
    """Three phases, seven readings, no datagram."""
    assert helper_step_seconds() <= suite_bar("helper_step_seconds")


def test_a_history_is_replayed_in_time() -> None:
    """A tenth of the history that the bar is about."""
    assert simulation_seconds(ATTEMPTS // 10) <= suite_bar("simulation_seconds") / 10


def test_watching_a_node_costs_next_to_nothing(tmp_path: Path) -> None:
    """CPU of the sampler over two minutes of a busy node; resident memory of the whole watching side over half an hour, which is flat."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the simulated NVML (Debian: gcc libc6-dev)")
    with structlog.testing.capture_logs():
        assert sampler_cost(tmp_path, 120.0).core_ratio <= suite_bar("sampler_core_ratio")
    warm, end = resident_mib(tmp_path, 900.0)
    assert end <= float(BOUNDS["agent_resident_mib"]["bar"])
    assert end - warm <= float(BOUNDS["agent_resident_growth_mib"]["bar"])


def test_the_store_keeps_much_of_sqlites_own_speed(tmp_path: Path) -> None:
    """Rows a second through the store, over executemany with the same rows."""
    assert ingest.sqlite(tmp_path, rows=2000, rounds=3).ratio >= least("sqlite_ingest_ratio")


def test_the_store_keeps_much_of_postgresqls_own_speed(postgres_server: Cluster) -> None:
    """Rows a second through the store, over COPY with the same rows."""
    assert ingest.postgresql(rows=2000, rounds=3, server=postgres_server).ratio >= least("postgresql_ingest_ratio")


@pytest.mark.parametrize("kind", sustained.KINDS)
def test_of_many_nodes_at_once_nothing_is_lost(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """400 nodes report twice while jobs are predicted: every key has its highest acknowledged peak, and ended jobs are learned from."""
    store = Database(f"sqlite:///{tmp_path / 'store.sqlite3'}")
    if kind == "postgresql":
        shared: Cluster = request.getfixturevalue("postgres_server")
        store = Database(shared.url(shared.new_database()))
    found = sustained.measure(store, tmp_path, Options(nodes=400, seconds=4.0, period_seconds=2.0, job_seconds=20.0))
    assert (found.batches, found.rows, found.refused_rows, found.lost_keys) == (800, 6400, 0, 0)
    assert found.learned > 0


def test_a_lost_key_is_noticed(tmp_path: Path) -> None:
    """What the bench holds against the database: a row that is gone, and one with a lower peak than was acknowledged."""
    store = Database(f"sqlite:///{tmp_path / 'store.sqlite3'}")
    rows = [ingest.a_row(index) for index in range(2)]
    names = [f"{row.node}/{row.job[5:]}" for row in rows]
    opened = open_store(store.url)
    opened.merge_peaks(rows)
    opened.close()
    assert len(set(names)) == 1
    total = sum(row.peak_bytes for row in rows)
    assert sustained.lost(store, Seen(expected={names[0]: total}, keys=2)) == 0
    assert sustained.lost(store, Seen(expected={names[0]: total + 1}, keys=2)) == 1
    assert sustained.lost(store, Seen(expected={names[0]: total, "another/": 1}, keys=3)) == 2


@pytest.mark.parametrize("name", ["published_jobs", *(path.stem for path in traced_sets())])
def test_every_golden_job_is_judged(name: str) -> None:
    """Jobs from all over the file get a verdict (UNDECIDED is one); none is an error."""
    errors = [(row.get("id") or row["architecture"], answer["error"]) for row, answer in answered_rows(name, limit=24) if "error" in answer]
    assert errors == []


def test_every_bound_says_what_it_means_and_what_set_it() -> None:
    """A bar without trials is a wish."""
    bounds = {name: bound for name, bound in BOUNDS.items() if name != "suite_factor"}
    assert bounds
    assert all(bound["meaning"] and bound["margin"] and bound["trials"] for bound in bounds.values())


def test_the_report_names_a_broken_bar() -> None:
    """The ratio is taken within a round, its median over the rounds, and a bar that does not hold is called broken."""
    cpu_seconds = {"echo": (1.0, 2.0, 1.0), "warm": (2.0, 4.0, 5.0), "fresh": (9.0, 9.0, 9.0)}
    found = Overhead({kind: [Sample(1000, cpu, 1.0, 0.01, 0.0) for cpu in cpu_seconds[kind]] for kind in KINDS})
    assert found.ratios("warm") == [2.0, 2.0, 5.0]
    assert "BROKEN" in report(found, {"warm": 1.9})
    assert "BROKEN" not in report(found, {"warm": 2.0})
