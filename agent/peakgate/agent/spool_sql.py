"""The spool's tables and statements, and its rows as Python values."""

# ruff: noqa: S608 (only our own column names go into the texts)
from __future__ import annotations

import json
import sqlite3
import zlib

from peakgate.agent.peaks import ALLOCATOR_FIGURES, Allocator, Flag, JobEvent, PeakKey, PeakRow, merged_phases
from peakgate.v1.allocator_report import PhaseReport

KEY_COLUMNS = ("cluster", "boot_id", "gpu_uuid", "job", "restart", "prediction", "pid", "pid_start_ticks", "source", "step")
TIME_COLUMNS = ("peak_time", "first_time", "last_time")
ROW_COLUMNS = (
    "gpu_name",
    "gpu_total_bytes",
    "peak_bytes",
    *TIME_COLUMNS,
    "samples",
    "gaps",
    "flags",
    "ended",
    "uid",
    "longest_gap_seconds",
    "xid",
)
DATA_COLUMNS = (*ROW_COLUMNS, *ALLOCATOR_FIGURES, "phases")
LARGER_COLUMNS = ("gpu_name", "gpu_total_bytes", "last_time", "samples", "gaps", "ended", "uid", "longest_gap_seconds", "xid")
EVENT_KEY_COLUMNS = ("cluster", "job", "restart", "prediction", "event")

KEY = ", ".join(KEY_COLUMNS)
DATA = ", ".join(DATA_COLUMNS)
EVENT_KEY = ", ".join(EVENT_KEY_COLUMNS)

SCHEMA_VERSION = 3
"""In the file's user_version. A file of another version is put aside."""
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS peaks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, version INTEGER NOT NULL, checksum INTEGER NOT NULL DEFAULT 0, {KEY}, {DATA}, UNIQUE ({KEY})
);
CREATE TABLE IF NOT EXISTS alive (checksum INTEGER NOT NULL, {KEY}, {DATA}, UNIQUE ({KEY}));
CREATE TABLE IF NOT EXISTS events ({EVENT_KEY}, time REAL NOT NULL, UNIQUE ({EVENT_KEY}));
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
TABLES = frozenset({"peaks", "alive", "events", "counters"})
"""Those of every version so far."""
# Each column merges by a function that does not care for order or repeats: maximum, minimum, union.
MERGE = f"""
INSERT INTO peaks (version, {KEY}, {DATA}) VALUES ({", ".join("?" * (1 + len(KEY_COLUMNS) + len(DATA_COLUMNS)))})
ON CONFLICT ({KEY}) DO UPDATE SET
    version = excluded.version,
    {", ".join(f"{name} = max({name}, excluded.{name})" for name in (*LARGER_COLUMNS, *ALLOCATOR_FIGURES))},
    peak_time = CASE WHEN excluded.peak_bytes > peak_bytes THEN excluded.peak_time
                     WHEN excluded.peak_bytes = peak_bytes THEN min(peak_time, excluded.peak_time) ELSE peak_time END,
    peak_bytes = max(peak_bytes, excluded.peak_bytes),
    first_time = min(first_time, excluded.first_time),
    flags = flags | excluded.flags,
    phases = CASE WHEN excluded.phases IN ('', phases) THEN phases ELSE merge_phases(phases, excluded.phases) END
"""
COUNT_UP = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value RETURNING value"
BYTES = ", ".join(f"CAST({column} AS BLOB)" for column in (*KEY_COLUMNS, *DATA_COLUMNS))
"""As bytes, because what was flipped need not be text any more."""
SEAL = f"UPDATE peaks SET checksum = checksum_of({BYTES}) WHERE version >= ?"
"""After MERGE: SQLite does not notice a flipped bit inside a value, and one in `job` would move a peak to another job."""
ROW = f"checksum, {KEY}, {DATA}"
KEEP_ALIVE = f"INSERT OR REPLACE INTO alive ({ROW}) SELECT {ROW} FROM peaks WHERE version >= ? AND NOT ended"
"""After SEAL: what has not ended is known also after it was acknowledged, for an agent that starts when it is over."""
FORGET_ENDED = f"DELETE FROM alive WHERE ({KEY}) IN (SELECT {KEY} FROM peaks WHERE version >= ? AND ended)"
SELECT_ALIVE = f"SELECT {KEY}, {DATA} FROM alive WHERE checksum = checksum_of({BYTES})"
NO_PEAKS = f"SELECT id, version, {ROW} FROM peaks LIMIT 0"
"""Fails where a column is missing."""
OLDEST = "SELECT cluster, boot_id FROM peaks WHERE version <= :latest ORDER BY version LIMIT 1"
IN_BATCH = f"FROM peaks WHERE version <= :latest AND (cluster, boot_id) = ({OLDEST}) ORDER BY version LIMIT :limit"
BATCH = f"SELECT id, version, {KEY}, {DATA} {IN_BATCH}"
DELETE_DAMAGED = f"DELETE FROM peaks WHERE id IN (SELECT id {IN_BATCH}) AND checksum <> checksum_of({BYTES})"
DELETE_PEAK = "DELETE FROM peaks WHERE id = ? AND version = ?"
INSERT_EVENT = f"INSERT OR IGNORE INTO events ({EVENT_KEY}, time) VALUES ({', '.join('?' * (len(EVENT_KEY_COLUMNS) + 1))})"
SELECT_EVENTS = f"SELECT {EVENT_KEY}, time FROM events ORDER BY time"
DELETE_EVENT = f"DELETE FROM events WHERE {' AND '.join(f'{column} = ?' for column in EVENT_KEY_COLUMNS)}"
LATEST = "SELECT value FROM counters WHERE name = 'version'"
OLDEST_TIME = "SELECT min(last_time) FROM peaks"
COUNT_PEAKS = "SELECT count(*) FROM peaks"
DELETE_SURPLUS = "DELETE FROM peaks WHERE id IN (SELECT id FROM peaks ORDER BY pid = 0, last_time LIMIT ?)"
"""The rows of single processes go first: a job's own row is what a prediction is compared with."""
WAITING = "SELECT (SELECT count(*) FROM peaks) + (SELECT count(*) FROM events)"


def values_of(row: PeakRow) -> tuple[str | int | float, ...]:
    """The row in the order of MERGE, without the version."""
    key = tuple(getattr(row.key, column) for column in KEY_COLUMNS)
    data = tuple(getattr(row, column) for column in ROW_COLUMNS)
    allocator = tuple(getattr(row.allocator, column) for column in ALLOCATOR_FIGURES)
    plain = (int(value) if isinstance(value, bool | Flag) else value for value in key + data + allocator)
    return (*plain, text_of_phases(row.allocator.phases))


def row_of(row: sqlite3.Row) -> PeakRow:
    """A row of BATCH."""
    return PeakRow(
        key=PeakKey(**{column: row[column] for column in KEY_COLUMNS}),
        **{column: row[column] for column in ROW_COLUMNS if column not in {"flags", "ended"}},
        flags=Flag(row["flags"]),
        ended=bool(row["ended"]),
        allocator=Allocator(**{column: row[column] for column in ALLOCATOR_FIGURES}, phases=phases_of(row["phases"])),
    )


def text_of_phases(phases: tuple[PhaseReport, ...]) -> str:
    """Phases as they stand in the table: `{"forward": [allocated, reserved]}`; empty for none."""
    return json.dumps({each.phase: [each.allocated_bytes, each.reserved_bytes] for each in phases}, sort_keys=True) if phases else ""


def phases_of(text: str) -> tuple[PhaseReport, ...]:
    """The opposite of `text_of_phases`."""
    found: dict[str, list[int]] = json.loads(text) if text else {}
    return tuple(PhaseReport(phase=name, allocated_bytes=pair[0], reserved_bytes=pair[1]) for name, pair in found.items())


def checksum_of(*values: bytes | None) -> int:
    """CRC-32 of a row's values; a function of the database, for SEAL."""
    return zlib.crc32(repr(values).encode())


def merge_phases(one: str, other: str) -> str:
    """The maximum of each phase's figures; a function of the database, for MERGE."""
    return text_of_phases(merged_phases((*phases_of(one), *phases_of(other))))


def values_of_event(event: JobEvent) -> tuple[str | int | float, ...]:
    """The event in the order of INSERT_EVENT; without its last value that of DELETE_EVENT."""
    return (*(getattr(event, column) for column in EVENT_KEY_COLUMNS), event.time)


def event_of(row: sqlite3.Row) -> JobEvent:
    """A row of SELECT_EVENTS."""
    return JobEvent(**{column: row[column] for column in EVENT_KEY_COLUMNS}, time=row["time"])
