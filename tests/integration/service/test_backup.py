"""Backup and restore by the commands of deploy/README.md, while a server writes: what was in comes out again."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tests.databases import Database, NewDatabase
from tests.integration.service.rows import a_peak, a_version, an_observation, the_writer
from tests.postgres import program
from tests.unit.server.stored import a_prediction

from peakgate.server.store.migrate import upgrade
from peakgate.server.store.sql import SqlStore, open_store

README = Path(__file__).resolve().parents[3] / "deploy/README.md"


def commands(first_word: str) -> list[list[str]]:
    """The README's command lines that begin so, as words, without their comments."""
    lines = re.findall(rf"^{first_word} .*$", README.read_text(), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def with_url(words: Sequence[str], url: str, folder: Path) -> list[str]:
    """A command for this database, its files in the folder."""
    there = [str(folder / "peakgate.dump") if word == "peakgate.dump" else word for word in words]
    told = [word.replace("$PEAKGATE_DATABASE_URL", url).replace("--file=", f"--file={folder}/") for word in there]
    found = program(told[0])
    assert found is not None, f"{told[0]} belongs to PostgreSQL's programs"
    return [str(found), *told[1:]]


def back_up(database: Database, target: Database, folder: Path) -> None:
    """From one database to another by the README's words."""
    if database.kind == "postgresql":
        (dump,), (restore,) = commands("pg_dump"), commands("pg_restore")
        for words, url in ((dump, database.url), (restore, target.url)):
            done = subprocess.run(with_url(words, url, folder), capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, done.stderr
        return
    (statement,) = re.findall(r"\"(VACUUM INTO .*)\"$", README.read_text(), re.MULTILINE)
    copy = folder / "backup.sqlite3"
    with closing(sqlite3.connect(database.url.removeprefix("sqlite:///"))) as connection:
        connection.execute(statement.replace("/tmp/backup.sqlite3", str(copy)))
    copy.replace(target.url.removeprefix("sqlite:///"))


def fill(store: SqlStore) -> None:
    """Something in the tables that are worth a backup."""
    store.add_predictions([a_prediction()])
    store.merge_peaks([a_peak()])
    assert store.apply([an_observation("predictions/0")], a_version(), expected_sequence=0, lease=the_writer(store))


def test_what_was_backed_up_is_restored(new_database: NewDatabase, tmp_path: Path) -> None:
    """Prediction, peak, observation and calibration come back, what came later does not, and the restored database takes more."""
    database, target = new_database("store"), new_database("restored")
    upgrade(database.url)
    with closing(open_store(database.url)) as store:
        fill(store)
        active = store.active_calibration()
        back_up(database, target, tmp_path)
        store.add_predictions([a_prediction("predictions/1")])
    upgrade(target.url)
    with closing(open_store(target.url)) as restored:
        assert restored.prediction("predictions/0") is not None
        assert restored.prediction("predictions/1") is None
        assert restored.active_calibration() == active
        assert target.count("peaks") == 1
        assert target.count("observations") == 1
        restored.add_predictions([a_prediction("predictions/2")])
        assert restored.prediction("predictions/2") is not None
