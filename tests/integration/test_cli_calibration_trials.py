"""`peakgate calibration shadow, quarantine, release`: with a database, and beside the verbs that show versions."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import grpc
import pytest
from tests.integration.cli import peakgate
from tests.integration.service.telling import a_batch, a_peak
from tests.integration.test_cli_calibration import JOB, observed, run

from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub


@pytest.fixture
def database(tmp_path: Path) -> str:
    """URL of a database with three versions of three jobs, and one more job that needed twice what was predicted."""
    url = f"sqlite:///{tmp_path}/peakgate.sqlite3"
    with observed(url) as target, grpc.insecure_channel(target) as channel:
        answer = PredictionServiceStub(channel).Predict(pb.PredictRequest(job=JOB))
        TelemetryServiceStub(channel).ReportPeaks(a_batch(a_peak(answer.prediction, answer.peak.device_bytes * 2, job="9", ended=True)))
    return url


def test_a_shadow_is_started_shown_and_ended(database: str) -> None:
    """Each rule with its figure; the list says in short what still fails."""
    started = json.loads(run(database, "shadow", "--output", "json").out)
    assert (started["state"], started["observations"], started["trial"]["rows"]) == ("shadow", 3, 0)
    text = run(database, "show", started["version"]).out
    assert text.startswith(f"calibration {started['version']}: shadow")
    rules = {line.split()[0]: line for line in text.splitlines() if line.startswith(("exact_rows", "miss_rate", "mean_bound", "worst"))}
    assert len(rules) == 4
    assert rules["exact_rows"].split()[1:6] == ["0", "at", "least", "500", "no"]
    assert rules["worst_group_miss_rate"].split()[1:6] == ["0.000", "at", "most", "0.200", "yes"]
    (listed,) = [line for line in run(database, "list").out.splitlines() if line.startswith(f"{started['version']} ")]
    assert "1 of 4 rules hold" in listed
    assert "learns already" in run(database, "shadow", status=2).err
    assert run(database, "shadow", "--stop").out.startswith(f"calibration {started['version']}: retired")
    assert "exclude each other" in run(database, "shadow", "--stop", "--from", "1.1", status=2).err


def test_a_shadow_is_promoted_untried_only_by_force(database: str) -> None:
    """What its trial has not shown is said, nothing is switched; --force switches, and any other version needs none."""
    started = json.loads(run(database, "shadow", "--output", "json").out)["version"]
    done = run(database, "promote", started, status=2)
    assert "has not shown that it is as good as the active version: 1 of 4 rules hold (exact_rows 0, at least 500; " in " ".join(
        done.err.split()
    )
    assert "TRIAL_OPEN" in done.err
    (active,) = [each for each in run(database, "list", "--output", "jsonl").objects if each["state"] == "active"]
    assert active["version"] != started
    assert run(database, "promote", started, "--force").out.startswith(f"calibration {active['version']} -> ")
    assert run(database, "promote", active["version"]).out.startswith("calibration ")


def test_a_shadow_from_a_version(database: str) -> None:
    """Not from the active one."""
    started = json.loads(run(database, "shadow", "--from", "1.2", "--output", "json").out)
    assert started["observations"] == 2
    run(database, "shadow", "--stop")
    (active,) = [each for each in run(database, "list", "--output", "jsonl").objects if each["state"] == "active"]
    assert "is the active version" in run(database, "shadow", "--from", active["version"], status=2).err


def test_what_is_kept_out_is_listed_and_released(database: str) -> None:
    """By its prediction, with a reason that the history keeps."""
    (kept,) = run(database, "quarantine", "--output", "jsonl").objects
    text = run(database, "quarantine").out
    assert f"{kept['prediction']} job 9, " in text
    assert "FAR_ABOVE_PREDICTION" in text
    other = "Nothing with reason ABOVE_CARD is kept out; without --reason and --group all are listed.\n"
    assert run(database, "quarantine", "--reason", "above_card").out == other
    assert run(database, "quarantine", "--reason", kept["reason"].lower(), "--output", "jsonl").objects == [kept]
    assert run(database, "quarantine", "--group", kept["group"], "--output", "jsonl").objects == [kept]
    done = run(database, "release", kept["prediction"], "--job", "9", "--reason", "a new image")
    assert done.out.startswith(f"{kept['prediction']} (job 9): learned as exact by calibration 1.")
    (active,) = [each for each in run(database, "list", "--output", "jsonl").objects if each["state"] == "active"]
    assert active["note"] == f"released {kept['prediction']} (job 9, FAR_ABOVE_PREDICTION) by {getpass.getuser()}: a new image"
    assert active["observations"] == 4
    assert run(database, "quarantine").out == "Nothing is kept out.\n"
    assert "it was released before" in run(database, "release", kept["prediction"], "--reason", "again", status=2).err


def test_a_database_must_be_named() -> None:
    """None of them means anything without."""
    for verb in (("shadow",), ("quarantine",), ("release", "predictions/0", "--reason", "x")):
        assert peakgate("calibration", *verb).status == 2
