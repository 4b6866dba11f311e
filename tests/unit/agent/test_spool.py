"""The spool: merging, acknowledging, surviving."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.builders import GIB, START, a_key, a_row, an_event, with_pid

from peakgate.agent import spool_sql as sql
from peakgate.agent.peaks import Allocator, Flag, PeakKey, PeakRow
from peakgate.agent.spool import Spool, SpooledPeak
from peakgate.v1.allocator_report import PhaseReport

COLUMNS_OF_VERSION = {
    3: "cluster boot_id gpu_uuid job restart prediction pid pid_start_ticks source step gpu_name gpu_total_bytes peak_bytes peak_time "
    "first_time last_time samples gaps flags ended uid longest_gap_seconds xid allocated_bytes reserved_bytes retries ooms steps_done "
    "longest_sequence phases",
}


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """An empty spool."""
    spool = Spool(path=tmp_path / "agent.db")
    yield spool
    spool.close()


def everything(spool: Spool) -> list[SpooledPeak]:
    """All that waits of one cluster and boot."""
    return spool.batch(limit=1000, up_to_version=spool.latest_version())


def rows(spool: Spool) -> list[PeakRow]:
    """The same without versions."""
    return [peak.row for peak in everything(spool)]


phases = st.lists(
    st.builds(
        PhaseReport, phase=st.sampled_from(["backward", "forward"]), allocated_bytes=st.integers(0, 3), reserved_bytes=st.integers(0, 3)
    ),
    max_size=2,
    unique_by=lambda each: each.phase,
).map(lambda found: tuple(sorted(found, key=lambda each: each.phase)))
allocators = st.builds(Allocator, allocated_bytes=st.integers(0, 3), steps_done=st.integers(0, 3), ooms=st.integers(0, 1), phases=phases)


@st.composite
def sightings(draw: st.DrawFn) -> PeakRow:
    """A row of one of three processes."""
    time = draw(st.integers(0, 9).map(float))
    row = a_row(a_key(pid=draw(st.integers(1, 3))), peak_bytes=draw(st.integers(0, 5)), time=time, flags=Flag(draw(st.integers(0, 31))))
    last_time = time + draw(st.integers(0, 9))
    row = replace(row, last_time=last_time, samples=draw(st.integers(1, 9)), gaps=draw(st.integers(0, 3)), ended=draw(st.booleans()))
    return replace(row, allocator=draw(allocators), xid=draw(st.integers(0, 3)), longest_gap_seconds=draw(st.integers(0, 3).map(float)))


histories = st.lists(sightings(), min_size=1, max_size=12)


def merged(tmp_path: Path, history: list[PeakRow]) -> list[PeakRow]:
    """What a fresh spool makes of a history, written one row at a time."""
    spool = Spool(path=tmp_path / f"{random.getrandbits(64)}.db")
    for row in history:
        spool.put(rows=[row])
    found = sorted(rows(spool), key=lambda row: row.key.pid)
    spool.close()
    return found


@given(history=histories, seed=st.integers(0, 1 << 30))
def test_duplicates_and_disorder_change_nothing(tmp_path_factory: pytest.TempPathFactory, history: list[PeakRow], seed: int) -> None:
    """A history with repeats in any order ends in the same rows as the history itself."""
    tmp_path = tmp_path_factory.mktemp("spool")
    mixed = history + random.Random(seed).choices(history, k=len(history))
    random.Random(seed).shuffle(mixed)
    assert merged(tmp_path, mixed) == merged(tmp_path, history)


@given(history=histories)
def test_a_row_holds_the_maximum_of_its_history(tmp_path_factory: pytest.TempPathFactory, history: list[PeakRow]) -> None:
    """The peak is the highest one, its time the first at which it was reached, the span covers all, flags are united."""
    found = merged(tmp_path_factory.mktemp("spool"), history)
    assert {row.key for row in found} == {row.key for row in history}
    for row in found:
        own = [other for other in history if other.key == row.key]
        want = max(own, key=lambda other: (other.peak_bytes, -other.peak_time))
        assert (row.peak_bytes, row.peak_time) == (want.peak_bytes, want.peak_time)
        assert (row.first_time, row.last_time) == (min(other.first_time for other in own), max(other.last_time for other in own))
        assert row.ended == any(other.ended for other in own)
        assert all(other.flags in row.flags for other in own)


def test_an_acknowledgement_deletes_only_what_was_sent(spool: Spool) -> None:
    """A peak that grew while its batch was on the way stays, with its new height."""
    spool.put(rows=[a_row(a_key(pid=1)), a_row(a_key(pid=2))])
    sent = everything(spool)
    spool.put(rows=[a_row(a_key(pid=1), peak_bytes=3 * GIB)])
    spool.acknowledge(sent)
    assert [(row.key.pid, row.peak_bytes) for row in rows(spool)] == [(1, 3 * GIB)]


def test_a_late_acknowledgement_cannot_take_a_newer_row(spool: Spool) -> None:
    """A row that was deleted and came again has a version that no earlier acknowledgement names."""
    spool.put(rows=[a_row()])
    sent = everything(spool)
    spool.acknowledge(sent)
    spool.put(rows=[a_row()])
    spool.acknowledge(sent)
    assert len(rows(spool)) == 1


def test_a_row_comes_back_as_it_went_in(spool: Spool) -> None:
    """Nothing is lost or changed on the way through SQLite."""
    row = replace(a_row(flags=Flag.TRUNCATED | Flag.UNATTRIBUTED, ended=True, time=START + 0.123456), samples=5, gaps=2, uid=1001)
    spool.put(rows=[row])
    assert rows(spool) == [row]


def test_a_batch_is_of_one_cluster_and_one_boot(spool: Spool) -> None:
    """A message names only one; rows of an earlier boot go in their own batch."""
    spool.put(rows=[a_row(a_key(boot_id="old")), a_row(a_key(boot_id="new")), a_row(a_key(boot_id="old", pid=9))])
    batches = []
    while batch := everything(spool):
        batches.append([(peak.row.key.boot_id, peak.row.key.pid) for peak in batch])
        spool.acknowledge(batch)
    assert batches == [[("old", 4242), ("old", 9)], [("new", 4242)]]


def test_a_batch_stops_at_the_version_it_was_asked_for(spool: Spool) -> None:
    """What comes while a drain is under way waits for the next one, or the drain would never end."""
    spool.put(rows=[a_row(a_key(pid=1))])
    latest = spool.latest_version()
    spool.put(rows=[a_row(a_key(pid=2))])
    assert [peak.row.key.pid for peak in spool.batch(limit=10, up_to_version=latest)] == [1]


def test_events_wait_until_they_are_acknowledged(spool: Spool) -> None:
    """An event is there once, however often it was put, and goes when it is answered."""
    spool.put(rows=[], events=[an_event(), an_event()])
    spool.put(rows=[], events=[an_event(), an_event(job="403")])
    assert spool.events() == [an_event(), an_event(job="403")]
    spool.acknowledge_event(an_event())
    assert spool.events() == [an_event(job="403")]


def test_sequences_go_on_after_a_restart(tmp_path: Path) -> None:
    """A batch number is never used twice in one boot, and a new boot begins at 1."""
    numbers = []
    for boot in ("a", "a", "b"):
        spool = Spool(path=tmp_path / "agent.db")
        numbers.append(spool.next_sequence(boot_id=boot))
        spool.close()
    assert numbers == [1, 2, 1]


def test_a_full_spool_gives_up_single_processes_first(tmp_path: Path) -> None:
    """The oldest rows of processes go, are counted, and the rows of whole jobs stay."""
    spool = Spool(path=tmp_path / "agent.db", max_rows=3)
    spool.put(rows=[a_row(a_key(pid=0)), *(a_row(a_key(pid=pid), time=START + pid) for pid in (1, 2, 3, 4))])
    assert sorted(row.key.pid for row in rows(spool)) == [0, 3, 4]
    assert spool.dropped_rows == 2
    spool.close()


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """Job ids and user ids are nobody else's business."""
    path = tmp_path / "agent.db"
    Spool(path=path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_nothing_half_done(spool: Spool) -> None:
    """The rows of a call are in the spool together or not at all."""
    broken = replace(with_pid(a_row(), 2), gpu_name=object())  # type: ignore[arg-type]  # what SQLite cannot store
    with pytest.raises(Exception, match="type 'object' is not supported"):
        spool.put(rows=[a_row(), broken])
    assert rows(spool) == []
    spool.put(rows=[a_row()])
    assert len(rows(spool)) == 1


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    """Watching goes on with a new file; the damaged one is kept for a person to look at."""
    path = tmp_path / "agent.db"
    path.write_bytes(b"SQLite format 3\0" + random.Random(1).randbytes(5000))
    spool = Spool(path=path, wall=lambda: 1.0)
    spool.put(rows=[a_row()])
    assert len(rows(spool)) == 1
    spool.close()
    assert (tmp_path / "agent.db.damaged-1").exists()


@pytest.mark.parametrize("kind", ["text", "database"])
def test_another_programs_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A wrong --spool, such as the service's own database, is an error and moves nothing away."""
    path = tmp_path / "other"
    if kind == "text":
        path.write_text("model: {preset: llama-3.1-8b}\n")
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript("CREATE TABLE peaks (id); CREATE TABLE predictions (id); INSERT INTO predictions VALUES (7)")
    before = path.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="another program's"):
        Spool(path=path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_a_spool_of_zeros_is_put_aside(tmp_path: Path) -> None:
    """What a power cut leaves of a file on some file systems."""
    path = tmp_path / "agent.db"
    path.write_bytes(bytes(5000))
    Spool(path=path, wall=lambda: 1.0).close()
    assert (tmp_path / "agent.db.damaged-1").read_bytes() == bytes(5000)


KILLED = """
import sys
from pathlib import Path
from tests.unit.agent.builders import a_key, a_row
from peakgate.agent.spool import Spool
spool = Spool(path=Path(sys.argv[1]))
for number in range(1, 1_000_000):
    spool.put(rows=[a_row(a_key(pid=number % 7 + 1), peak_bytes=number)])
    print(number, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 20, 200])
def test_a_kill_loses_nothing_that_was_written(tmp_path: Path, lines: int) -> None:
    """kill -9 in the middle of writing: every put that returned is in the file, and the file is whole."""
    path = tmp_path / "agent.db"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    said = [int(process.stdout.readline()) for _ in range(lines)]
    process.kill()
    said += [int(line) for line in process.stdout.read().split()]
    process.stdout.close()
    process.wait()
    spool = Spool(path=path)
    assert max(row.peak_bytes for row in rows(spool)) >= said[-1]
    assert len(rows(spool)) == min(7, max(row.peak_bytes for row in rows(spool)))
    spool.close()


def test_peaks_by_phase_merge_one_by_one(spool: Spool) -> None:
    """Each figure of each phase has its own maximum, and a phase that is new joins the others."""
    one = Allocator(phases=(PhaseReport(phase="forward", allocated_bytes=5, reserved_bytes=6),))
    forward = PhaseReport(phase="forward", allocated_bytes=4, reserved_bytes=9)
    other = Allocator(phases=(PhaseReport(phase="backward", allocated_bytes=1, reserved_bytes=1), forward))
    spool.put(rows=[replace(a_row(), allocator=one)])
    spool.put(rows=[replace(a_row(), allocator=other)])
    assert [(each.phase, each.allocated_bytes, each.reserved_bytes) for each in rows(spool)[0].allocator.phases] == [
        ("backward", 1, 1),
        ("forward", 5, 9),
    ]


def test_sources_and_steps_stay_apart(spool: Spool) -> None:
    """What the driver, NVML and torch say of one process are three figures; so are those of two trainings."""
    keys = [replace(a_key(), source=source, step=step) for source in ("sampled", "torch") for step in ("0", "1")]
    spool.put(rows=[a_row(key, peak_bytes=number + 1) for number, key in enumerate(keys)])
    assert [row.key for row in rows(spool)] == keys


def test_a_spool_of_another_version_is_put_aside(tmp_path: Path) -> None:
    """Its rows are kept for a person; watching goes on in a new file."""
    path = tmp_path / "agent.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE peaks (id)")
    connection.close()
    spool = Spool(path=path, wall=lambda: START)
    spool.put(rows=[a_row()])
    assert spool.waiting() == 1
    spool.close()
    assert [found.name for found in tmp_path.glob("agent.db.damaged-*")] == [f"agent.db.damaged-{int(START)}"]


def test_every_field_of_a_row_is_a_column_that_merges() -> None:
    """A new one that is forgotten would be lost on its way to the service, or stay as it was first seen."""
    names = [field.name for kind in (PeakKey, PeakRow, Allocator) for field in fields(kind) if field.name not in {"key", "allocator"}]
    assert sorted(names) == sorted((*sql.KEY_COLUMNS, *sql.DATA_COLUMNS))
    assert [name for name in sql.DATA_COLUMNS if f" {name} = " not in sql.MERGE] == []


def test_a_new_column_is_a_new_version() -> None:
    """A file with other columns is put aside because its version says so."""
    assert " ".join((*sql.KEY_COLUMNS, *sql.DATA_COLUMNS)) == COLUMNS_OF_VERSION[sql.SCHEMA_VERSION]


def test_what_has_not_ended_is_known_also_after_it_was_acknowledged(spool: Spool) -> None:
    """As it was last put; an end takes it away."""
    spool.put(rows=[a_row(peak_bytes=5), with_pid(a_row(), 7)])
    spool.acknowledge(everything(spool))
    spool.put(rows=[a_row(peak_bytes=9)])
    assert sorted((row.key.pid, row.peak_bytes) for row in spool.alive()) == [(7, GIB), (4242, 9)]
    spool.put(rows=[with_pid(a_row(ended=True), 7)])
    assert [row.key.pid for row in spool.alive()] == [4242]
