"""Ten thousand simulated nodes report to one server process while jobs are predicted: is anything lost, and how long do answers take?

Server, nodes and submitters are processes of their own. Afterwards the database is asked for every key's highest peak, which must be
the highest that was acknowledged. PostgreSQL and SQLite keep their promise to the disk here: fsync is on.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.bench.load import Options, Seen
from tests.bench.programs import PEAKGATE, ROOT, Program, environment, free_port, machine_cpu_seconds, running
from tests.databases import Database
from tests.postgres import DURABLE, cluster

KINDS = ("postgresql", "sqlite")
PREDICTIONS_PER_SECOND = 20.0


@dataclass(frozen=True, kw_only=True)
class Sustained:
    """What a run found."""

    kind: str
    nodes: int
    batches: int
    batches_per_second: float
    rows: int
    refused_rows: int
    repeated_calls: int
    lost_keys: int
    learned: int
    report_p99_seconds: float
    predictions: int
    predict_p50_seconds: float
    predict_p99_seconds: float
    late_seconds: float
    server_cpu_ratio: float
    machine_cpu_ratio: float


@contextlib.contextmanager
def database(kind: str, folder: Path) -> Iterator[Database]:
    """A durable database of its own."""
    if kind == "sqlite":
        yield Database(f"sqlite:///{folder / 'sustained.sqlite3'}")
        return
    with cluster(DURABLE) as server:
        yield Database(server.url(server.new_database()))


@contextlib.contextmanager
def server(store: Database, folder: Path) -> Iterator[Program]:
    """`peakgate serve` on a database."""
    port = free_port()
    ports = {"PEAKGATE_GRPC_PORT": str(port), "PEAKGATE_HTTP_PORT": str(free_port())}
    settings = ports | {"PEAKGATE_DATABASE_URL": store.url, "PEAKGATE_LOG_LEVEL": "WARNING", "PEAKGATE_QUIET_SECONDS": "0"}
    with running([str(PEAKGATE), "serve"], port, settings, folder) as program:
        yield program


def _start(kind: str, options: Options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.bench.load", kind, json.dumps(asdict(options))]
    return subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)


def results(*processes: subprocess.Popen[str]) -> list[Seen]:
    """What each process saw, once all of them have ended. Raises RuntimeError when one failed."""
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"the load ended with {[process.returncode for process in processes]}")
    return [Seen(**json.loads(output)) for output in outputs]


def lost(store: Database, seen: Seen) -> int:
    """Keys whose stored peak is not the highest that was acknowledged: of each job of a node its sum, of all of them their number."""
    query = "SELECT node, job, sum(peak_bytes), count(*) FROM peaks GROUP BY node, job"
    found = {f"{node}/{str(job)[5:]}": (int(str(total)), int(str(keys))) for node, job, total, keys in store.rows(query)}
    wrong = [name for name, total in seen.expected.items() if found.get(name, (0, 0))[0] != total]
    return len(wrong) + abs(sum(keys for _, keys in found.values()) - seen.keys)


def measure(store: Database, folder: Path, load: Options) -> Sustained:
    """One run on a new database; `load` without its target."""
    with server(store, folder) as program:
        reports = _start("reports", replace(load, target=program.target))
        _wait_for_first_peaks(store)
        cpu, machine, begin = program.cpu_seconds(), machine_cpu_seconds(), time.perf_counter()
        asking = Options(target=program.target, seconds=load.seconds, predictions_per_second=PREDICTIONS_PER_SECOND)
        seen, answers = results(reports, _start("predictions", asking))
        wall = time.perf_counter() - begin
        cpu, machine = program.cpu_seconds() - cpu, machine_cpu_seconds() - machine
    return Sustained(
        kind=store.kind,
        nodes=load.nodes,
        batches=seen.calls,
        batches_per_second=seen.calls / load.seconds,
        rows=seen.stored_rows,
        refused_rows=seen.refused_rows,
        repeated_calls=seen.repeated,
        lost_keys=lost(store, seen),
        learned=store.count("observations"),
        report_p99_seconds=quantile(seen.seconds, 0.99),
        predictions=answers.calls,
        predict_p50_seconds=quantile(answers.seconds, 0.5),
        predict_p99_seconds=quantile(answers.seconds, 0.99),
        late_seconds=max(seen.late_seconds, answers.late_seconds),
        server_cpu_ratio=cpu / wall,
        machine_cpu_ratio=machine / wall / (os.cpu_count() or 1),
    )


def _wait_for_first_peaks(store: Database) -> None:
    """The nodes' predictions are made first; submitters are measured beside reports only."""
    deadline = time.monotonic() + 120
    while not store.count("peaks"):
        if time.monotonic() > deadline:
            raise RuntimeError("no peak was reported within two minutes")
        time.sleep(0.1)


def quantile(seconds: list[float], share: float) -> float:
    """Of what was measured."""
    return sorted(seconds)[int(share * (len(seconds) - 1))]


def line(found: Sustained) -> str:
    """One run in four lines."""
    lines = [f"{found.kind}: {found.nodes} nodes, {found.batches} batches ({found.batches_per_second:.0f}/s), {found.rows} rows stored"]
    lines.append(f"  {found.refused_rows} rows refused, {found.repeated_calls} calls repeated, {found.lost_keys} keys lost")
    report, median, p99 = (seconds * 1e3 for seconds in (found.report_p99_seconds, found.predict_p50_seconds, found.predict_p99_seconds))
    lines.append(f"  ReportPeaks p99 {report:.0f} ms; {found.predictions} Predicts: p50 {median:.1f} ms, p99 {p99:.1f} ms")
    late = f"load late by at most {found.late_seconds * 1e3:.0f} ms; {found.learned} jobs learned from"
    lines.append(f"  server {found.server_cpu_ratio:.0%} of a core, machine {found.machine_cpu_ratio:.0%} busy; {late}")
    return "\n".join(lines)
