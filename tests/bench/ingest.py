"""What the store adds to the database: rows a second of observed peaks through it, over the driver alone with the same rows.

SQLite is held against executemany of a plain INSERT, PostgreSQL against a plain COPY, both into the same table with its keys, with the
same rows a transaction and the same promise to the disk. Both sides run in each round, in turns, and the best of each is compared: what
else runs on the machine can only slow a round down. CPU time of both ends stands beside it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.programs import TICKS_PER_SECOND
from tests.databases import Database
from tests.postgres import DURABLE, Cluster, cluster

from peakgate.server.store.merging import values_of
from peakgate.server.store.records import PeakRow
from peakgate.server.store.sql import SqlStore, open_store
from peakgate.server.store.tables import peaks

ROWS_A_TRANSACTION = 500
NAMES = [column.name for column in peaks.columns]
COLUMNS = ", ".join(NAMES)


@dataclass(frozen=True)
class Sample:
    """One pass over all rows."""

    rows: int
    wall_seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Ingest:
    """What a run found on one kind of database: the passes of the driver alone and of the store."""

    raw: list[Sample]
    store: list[Sample]

    @property
    def ratio(self) -> float:
        """Rows a second of the store's best pass over those of the driver's best."""
        return min(sample.wall_seconds for sample in self.raw) / min(sample.wall_seconds for sample in self.store)

    @property
    def cpu_ratio(self) -> float:
        """The same a second of CPU time, client and server together."""
        return min(sample.cpu_seconds for sample in self.raw) / min(sample.cpu_seconds for sample in self.store)


def a_row(index: int) -> PeakRow:
    """A row as an agent sends it; each has a key of its own."""
    return PeakRow(
        cluster="bench",
        node=f"gpu-node-{index // 8 % 10_000:05d}.example.org",
        gpu_uuid=f"GPU-5d5ba0d6-d33d-2b2c-524d-{index:012x}",
        job=str(1_000_000 + index // 64),
        restart=0,
        prediction="",
        pid=4000 + index % 8,
        pid_start_ticks=1_000_000_000 + index,
        source="sampled",
        gpu_name="NVIDIA H100 80GB HBM3",
        gpu_total_bytes=85_520_809_984,
        peak_bytes=60_000_000_000 + index,
        torch_allocated_bytes=0,
        torch_reserved_bytes=0,
        first_us=1_700_000_000_000_000 + index,
        last_us=1_700_000_030_000_000 + index,
        peak_us=1_700_000_020_000_000 + index,
        samples=60,
        gaps=0,
        flags=0,
        ended=0,
        uid=1000,
        boot_id="0f5fc9ae-1b1b-4c39-9d3f-1b2d1e0aa001",
        agent_version="0.1.0",
        driver_version="550.54.15",
    )


Chunks = list[list[PeakRow]]
RawChunks = Sequence[Sequence[tuple[object, ...]]]


def chunks_of(rows: int) -> Chunks:
    """Rows by transaction."""
    return [[a_row(index) for index in range(start, min(start + ROWS_A_TRANSACTION, rows))] for start in range(0, rows, ROWS_A_TRANSACTION)]


def through_store(store: SqlStore, chunks: Chunks) -> None:
    """What the service does with them."""
    for chunk in chunks:
        store.merge_peaks(chunk)


def raw_sqlite(path: Path, chunks: RawChunks) -> None:
    """executemany of a plain INSERT, with the store's settings."""
    statement = f"INSERT INTO peaks ({COLUMNS}) VALUES ({', '.join('?' * len(NAMES))})"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        for chunk in chunks:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, chunk)
            connection.execute("COMMIT")


def raw_postgresql(url: str, chunks: RawChunks) -> None:
    """A plain COPY."""
    import psycopg

    with psycopg.connect(url) as connection:
        for chunk in chunks:
            with connection.cursor() as cursor, cursor.copy(f"COPY peaks ({COLUMNS}) FROM STDIN".encode()) as copy:
                for row in chunk:
                    copy.write_row(row)
            connection.commit()


def cpu_seconds_of(process_id: int) -> float:
    """User and system time of a server with all its children, running and ended (proc(5): stat, fields 14 to 17); 0 for one that has just
    ended, whose time is its parent's from now on."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND + sum(cpu_seconds_of(int(child)) for child in children)


@contextmanager
def emptied(store: Database) -> Iterator[None]:
    """Runs a pass on an empty table."""
    store.run("DELETE FROM peaks" if store.kind == "sqlite" else "TRUNCATE peaks")
    if store.kind == "sqlite":
        with closing(sqlite3.connect(store.url.removeprefix("sqlite:///"))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    yield


def timed(store: Database, rows: int, server_process: int | None, work: Callable[[], None]) -> Sample:
    """One pass."""
    with emptied(store):
        server = cpu_seconds_of(server_process) if server_process is not None else 0.0
        own, begin = time.process_time(), time.perf_counter()
        work()
        wall, own = time.perf_counter() - begin, time.process_time() - own
        used = cpu_seconds_of(server_process) - server if server_process is not None else 0.0
    assert store.count("peaks") == rows
    return Sample(rows, wall, own + used)


def compare(
    database: Database, raw: Callable[[Sequence[Sequence[tuple[object, ...]]]], None], *, rows: int, rounds: int, server: int | None
) -> Ingest:
    """Both sides, in turns."""
    chunks = chunks_of(rows)
    values = [[values_of(row) for row in chunk] for chunk in chunks]
    store = open_store(database.url)
    found = Ingest([], [])
    for _ in range(rounds):
        found.raw.append(timed(database, rows, server, lambda: raw(values)))
        found.store.append(timed(database, rows, server, lambda: through_store(store, chunks)))
    store.close()
    return found


def sqlite(folder: Path, *, rows: int, rounds: int) -> Ingest:
    """On a file."""
    path = folder / "ingest.sqlite3"
    return compare(Database(f"sqlite:///{path}"), lambda values: raw_sqlite(path, values), rows=rows, rounds=rounds, server=None)


def postgresql(*, rows: int, rounds: int, server: Cluster | None = None) -> Ingest:
    """On a server that keeps its promise to the disk, or on the one that is given."""
    if server is None:
        with cluster(DURABLE) as durable:
            return postgresql(rows=rows, rounds=rounds, server=durable)
    name = server.new_database()
    url = server.url(name)
    found = compare(Database(url), lambda values: raw_postgresql(url, values), rows=rows, rounds=rounds, server=server.process_id)
    server.give_back(name)
    return found


def line(kind: str, raw_name: str, found: Ingest, bar: float) -> str:
    """What `make bench` prints."""
    raw, store = (max(sample.rows / sample.wall_seconds for sample in side) for side in (found.raw, found.store))
    verdict = "holds" if found.ratio >= bar else "BROKEN"
    return (
        f"{kind}: {store:.0f} rows/s through the store, {raw:.0f} by {raw_name}: {found.ratio:.2f} "
        f"(bar {bar}: {verdict}); by CPU time {found.cpu_ratio:.2f}; load {os.getloadavg()[0]:.1f}"
    )
