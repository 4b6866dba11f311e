"""`peakgate calibration list, show, promote, rollback`: with a database, and against a running server."""

from __future__ import annotations

import getpass
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
import yaml
from tests.integration.cli import EXAMPLES, Done, peakgate
from tests.integration.service.telling import a_batch, a_peak

from peakgate.server.embedded import open_embedded
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.document import parse_job
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

JOB = parse_job(yaml.safe_load((EXAMPLES / "llama-3.2-1b-full.yaml").read_text()))


@contextmanager
def observed(url: str) -> Iterator[str]:
    """A service on the database at which three jobs have been observed, as HOST:PORT of a socket; one version each."""
    with open_embedded(url) as target, grpc.insecure_channel(target) as channel:
        for number in range(3):
            answer = PredictionServiceStub(channel).Predict(pb.PredictRequest(job=JOB))
            peak = a_peak(answer.prediction, answer.peak.device_bytes * (1 + number / 20), job=str(number), ended=True)
            TelemetryServiceStub(channel).ReportPeaks(a_batch(peak))
        yield target


@pytest.fixture
def database(tmp_path: Path) -> str:
    """URL of a database with three versions: that of the day, one more, and the active one."""
    url = f"sqlite:///{tmp_path}/peakgate.sqlite3"
    with observed(url):
        return url


def run(database: str, *arguments: object, status: int = 0) -> Done:
    """One verb of `peakgate calibration`."""
    done = peakgate("calibration", *arguments, "--db", database)
    assert done.status == status, done.err
    return done


def test_the_list_shows_what_people_go_back_to(database: str) -> None:
    """The active one and that of the day; every one with --all."""
    shown = run(database, "list", "--output", "jsonl").objects
    assert [(each["version"], each["state"], each["kind"]) for each in shown] == [("1.3", "active", ""), ("1.1", "retired", "daily")]
    every = json.loads(run(database, "list", "--all", "--output", "json").out)
    assert [each["version"] for each in every] == ["1.3", "1.2", "1.1"]
    assert [each["version"] for each in run(database, "list", "--all", "-n", "1", "--output", "jsonl").objects] == ["1.3"]
    lines = run(database, "list").out.splitlines()
    assert lines[0].split() == ["version", "state", "kept", "as", "made", "observations", "note"]
    assert lines[2].split()[:3] == ["1.1", "retired", "daily"]


def test_one_rollback_and_one_promotion_there_and_back(database: str) -> None:
    """Each says from where to where; the history says who and why."""
    done = run(database, "rollback", "--reason", "misses since the upgrade")
    first, second = done.out.splitlines()
    assert first.startswith("calibration 1.3 -> 1.1 (made ")
    assert second == "2 observations are set aside; to take in what was observed since: peakgate calibration promote 1.3"
    (active,) = [each for each in run(database, "list", "--output", "jsonl").objects if each["state"] == "active"]
    assert (active["version"], active["kind"]) == ("1.1", "daily")
    assert re.fullmatch(rf"promoted after 1.3 on .* UTC by {getpass.getuser()}: misses since the upgrade", active["note"])
    forth = json.loads(run(database, "promote", "1.3", "--output", "json").out)
    assert (forth["from_version"], forth["calibration"]["version"], forth["set_aside"]) == ("1.1", "1.3", 0)
    assert run(database, "promote", "1.3").out == "calibration 1.3 was active already\n"


def test_a_version_is_shown_with_its_groups_and_levels(database: str) -> None:
    """The active one, or the one that is named."""
    shown = json.loads(run(database, "show", "--output", "json").out)
    assert (shown["version"], shown["observations"], shown["distrust"]) == ("1.3", 3, [])
    assert [group["observations"] for group in shown["groups"]] == [3]
    assert [(level["observations"], level["alarms"]) for level in shown["levels"]] == [(3, 0)] * 2
    text = run(database, "show", "1.1").out
    assert text.startswith("calibration 1.1: retired, daily, made ")
    assert "trusted" in text
    assert "1.000" in text  # needed as predicted


def test_what_is_not_there_is_said(database: str, tmp_path: Path) -> None:
    """An unknown version, nothing to go back to, no database."""
    assert "'1.9' is not known" in run(database, "promote", "1.9", status=2).err
    empty = f"sqlite:///{tmp_path}/empty.sqlite3"
    assert "there is no version before the active one" in run(empty, "rollback", status=2).err
    assert "the prior" in run(empty, "list").out
    assert "the prior" in run(empty, "show").out
    assert peakgate("calibration", "list").status == 2


def test_a_server_answers_with_the_version_at_once(tmp_path: Path) -> None:
    """The same verbs against a running service."""
    with observed(f"sqlite:///{tmp_path}/peakgate.sqlite3") as target, grpc.insecure_channel(target) as channel:
        done = peakgate("calibration", "rollback", "--server", target)
        assert (done.status, done.out.split()[1:4]) == (0, ["1.3", "->", "1.1"])
        answer = PredictionServiceStub(channel).Predict(pb.PredictRequest(job=JOB))
        assert answer.calibration.version == "1.1"


def test_a_server_follows_a_switch_in_its_file(tmp_path: Path) -> None:
    """Another command on the same file of SQLite is followed within 2 s."""
    url = f"sqlite:///{tmp_path}/peakgate.sqlite3"
    with observed(url) as target, grpc.insecure_channel(target) as channel:
        run(url, "rollback")
        stub = PredictionServiceStub(channel)
        deadline = time.monotonic() + 2
        while (version := stub.Predict(pb.PredictRequest(job=JOB)).calibration.version) != "1.1" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert version == "1.1"
