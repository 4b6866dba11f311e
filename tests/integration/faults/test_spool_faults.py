"""What happens to the spool when its disk or its file fails."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from tests.unit.agent.builders import GIB, a_key, a_row

from peakgate.agent.peaks import PeakRow
from peakgate.agent.spool import Spool

IN_THE_SUITE, IN_ALL = 40, 400
SEEDS = [*range(IN_THE_SUITE), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(IN_THE_SUITE, IN_ALL))]
ROWS = [a_row(a_key(pid=pid, job=str(pid)), peak_bytes=pid * GIB) for pid in range(1, 60)]


@cache
def a_spool() -> bytes:
    """A spool of sixty rows of as many jobs, closed."""
    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(path=Path(folder) / "agent.db")
        spool.put(rows=ROWS)
        spool.close()
        return (Path(folder) / "agent.db").read_bytes()


def a_file(folder: Path) -> Path:
    """One with it."""
    (folder / "agent.db").write_bytes(a_spool())
    return folder / "agent.db"


def what_is_left(path: Path) -> list[PeakRow]:
    """The rows of a spool, read as the sender reads them; the spool works on afterwards."""
    spool = Spool(path=path)
    for _ in range(3):
        try:
            found = [peak.row for peak in spool.batch(limit=1000, up_to_version=spool.latest_version())]
            spool.put(rows=[a_row(a_key(pid=1000))])
            break
        except sqlite3.DatabaseError:
            continue
    else:
        raise AssertionError("the spool does not work again")
    assert spool.waiting() >= 1
    spool.close()
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_truncated_file_loses_rows_and_invents_none(tmp_path: Path, seed: int) -> None:
    """Cut at any place: the agent goes on, with those rows that are whole or with a new file; none is changed."""
    path = a_file(tmp_path)
    os.truncate(path, random.Random(seed).randrange(path.stat().st_size))
    assert all(row in ROWS for row in what_is_left(path))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flipped_bit_moves_no_peak_to_another_job(tmp_path: Path, seed: int) -> None:
    """One to eight bits anywhere in the file: a row is as it was written or it is gone."""
    path = a_file(tmp_path)
    content, draw = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(draw.randint(1, 8)):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    assert all(row in ROWS for row in what_is_left(path))


@pytest.mark.parametrize("place", [3, 45], ids=["magic", "schema"])
def test_a_spool_with_a_wrong_bit_where_it_begins_is_still_a_spool(tmp_path: Path, place: int) -> None:
    """It is damaged, and no other program's file: put aside, and the watch goes on."""
    path = a_file(tmp_path)
    content = bytearray(path.read_bytes())
    content[place if place < 16 else content.index(b"CREATE TABLE peaks") + 14] ^= 0x80
    path.write_bytes(content)
    assert what_is_left(path) == []
    assert list(tmp_path.glob("agent.db.damaged-*"))


def test_a_flipped_bit_in_a_value_costs_its_row_only(tmp_path: Path) -> None:
    """SQLite takes such a file for whole; the row's checksum does not."""
    path = a_file(tmp_path)
    content = path.read_bytes()
    place = content.index(b"NVIDIA H100")
    path.write_bytes(content[:place] + b"X" + content[place + 1 :])
    assert len(what_is_left(path)) == len(ROWS) - 1


def test_damage_while_the_agent_runs_is_put_aside(tmp_path: Path) -> None:
    """The call that meets it raises and is made again, as the watcher and the sender do; the damaged file is kept."""
    path = a_file(tmp_path)
    spool = Spool(path=path, wall=lambda: 5.0)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(path.stat().st_size - 4096))
    spool._file._connection.execute("PRAGMA shrink_memory")  # or it would read from its cache
    with pytest.raises(sqlite3.DatabaseError):
        spool.batch(limit=1000, up_to_version=1000)
    spool.put(rows=[ROWS[0]])
    assert [peak.row for peak in spool.batch(limit=1000, up_to_version=1000)] == [ROWS[0]]
    spool.close()
    assert (tmp_path / "agent.db.damaged-5").exists()


FULL_DISK = """
import resource, sqlite3, sys
from pathlib import Path
from tests.unit.agent.builders import a_key, a_row
from peakgate.agent.spool import Spool
spool = Spool(path=Path(sys.argv[1]))
spool.put(rows=[a_row(a_key(pid=1))])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (262144, hard))
failed = 0
for pid in range(2, 400):
    try:
        spool.put(rows=[a_row(a_key(pid=pid))])
    except sqlite3.OperationalError:
        failed += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
spool.put(rows=[a_row(a_key(pid=9999))])
print(failed, spool.waiting())
spool.close()
"""


def test_a_full_disk_is_waited_out(tmp_path: Path) -> None:
    """What was written stays and can be read, a write that fails leaves nothing half done, and with room it works again."""
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path / "agent.db")], capture_output=True, text=True, check=True)
    failed, waiting = map(int, done.stdout.split())
    assert failed > 0
    assert waiting == 400 - failed
    assert len(what_is_left(tmp_path / "agent.db")) == 400 - failed


READ_ONLY = """
import os, sys
from pathlib import Path
import pynvml
from peakgate.agent import start
from peakgate.agent.options import Options
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
sys.exit(start.run(Options(server="127.0.0.1:1", node="n", cluster="c", spool=Path(sys.argv[1]), once=True)))
"""


@pytest.mark.parametrize("exists", [True, False])
def test_a_read_only_spool_is_bad_usage(tmp_path: Path, exists: bool) -> None:
    """The agent does not start and says which file it cannot write and what to do; what is in the file stays."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own folders are closed to other users
    try:
        path = a_file(folder) if exists else folder / "agent.db"
        path.chmod(0o444) if exists else None
        folder.chmod(0o555)
        done = subprocess.run([sys.executable, "-c", READ_ONLY, str(path)], capture_output=True, text=True, check=False)
        folder.chmod(0o755)
        assert done.returncode == 2
        assert f"the spool {path} cannot be opened" in done.stdout + done.stderr
        assert "--spool" in done.stdout + done.stderr
        if exists:
            path.chmod(0o644)
            assert len(what_is_left(path)) == len(ROWS)
    finally:
        shutil.rmtree(folder)
