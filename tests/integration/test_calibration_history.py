"""`peakgate calibration simulate` and `export` as a person runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.histories import a_history
from tests.integration.cli import EXAMPLES, peakgate

from peakgate.client.connect import open_client
from peakgate.v1.document import parse_job
from peakgate.v1.telemetry_service_pb2 import NodeInfo, PeakSample, ReportPeaksRequest

UUID = "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"
PARTS = ("admitted", "right_rejections", "false_rejections", "rejected_unknown")


@pytest.fixture
def history(tmp_path: Path) -> Callable[..., Path]:
    """Writes a history of some hundred attempts, with these lines in front."""

    def write(*lines: str, attempts: int = 300) -> Path:
        path = tmp_path / "history.jsonl"
        path.write_text("\n".join([*lines, *(json.dumps(each) for each in a_history(attempts))]) + "\n")
        return path

    return write


def test_a_file_alone_is_enough(history: Callable[..., Path]) -> None:
    """No service, no database: a line for each policy, one of them marked, and what the figures cannot say."""
    done = peakgate("calibration", "simulate", "--history", history())
    assert (done.status, done.err) == (0, "")
    for words in ("15 % of the card", "α = 5 %, 1 % where unsure", "what this site runs now", "→ costs least", "holds the jobs that ran"):
        assert words in done.out


def test_programs_read_the_same_as_json(history: Callable[..., Path]) -> None:
    """Every job is counted once under each policy that was asked for, and the settings are told."""
    words = ("--policy", "fixed:15", "--policy", "site", "--costs", "100:1", "--overrides", "0.2", "--output", "json")
    (answer,) = json.loads(f"[{peakgate('calibration', 'simulate', '--history', history(), *words).out}]")
    assert [each["policy"] for each in answer["policies"]] == ["fixed:15", "site"]
    assert (answer["oom_cost"], answer["rejection_cost"], answer["override_share"]) == (100.0, 1.0, 0.2)
    for each in answer["policies"]:
        assert sum(each[part] for part in PARTS) == each["jobs"] == answer["attempts"]
    lines = peakgate("calibration", "simulate", "--history", history(), *words[:-1], "jsonl").objects
    assert lines == answer["policies"]


def test_bad_lines_are_named_skipped_and_counted(history: Callable[..., Path]) -> None:
    """Those that are no JSON here, those that are no job in the service; the answer is the others'."""
    first = next(a_history(1))
    unknown = first | {"job": first["job"] | {"model": {"preset": "no such model"}}}
    path = history("{", json.dumps(first | {"observed_bytes": -1}), json.dumps(unknown))
    done = peakgate("calibration", "simulate", "--history", path, "--policy", "site", "--output", "json")
    answer = json.loads(done.out)
    assert done.status == 0
    assert [(each["line"], each["reason"]) for each in answer["refused"]] == [
        (1, "LINE_INVALID"),
        (2, "VALUE_INVALID"),
        (3, "MODEL_UNKNOWN"),
    ]
    assert answer["refused_attempts"] == 3
    assert f"{path}:1: LINE_INVALID: is not JSON" in done.err
    assert f"3 of {answer['attempts'] + 3} attempts were left out" in done.err


NO_TIME = '{"job": {"model": {"preset": "llama-3.2-1b"}}, "outcome": "oom"}'


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        (("{", "[]"), "none of the 2 lines is an attempt; line 1: is not JSON"),
        ((NO_TIME,), "none of the 1 attempts can be used; line 1: VALUE_INVALID: finished_at is missing"),
        (("{", "", NO_TIME, "[]"), "none of the 3 lines can be used; line 1: is not JSON"),
        (("{", "", NO_TIME, "[]"), "; line 3: VALUE_INVALID: finished_at is missing"),
    ],
    ids=["no JSON", "no time", "both", "both, the service's"],
)
def test_a_history_of_bad_lines_is_an_error(lines: tuple[str, ...], want: str, tmp_path: Path) -> None:
    """Bad input: how many lines there are, whoever found them bad, with the first one and what is wrong with it."""
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    done = peakgate("calibration", "simulate", "--history", tmp_path / "bad.jsonl", "--output", "json")
    error = json.loads(done.out)["error"]
    assert (done.status, error["reason"]) == (2, "HISTORY_UNUSABLE")
    assert want in error["message"]


@pytest.mark.parametrize(
    ("words", "want_reason"),
    [
        ((), "STORE_UNNAMED"),
        (("--history", "x", "--since", "7d"), "USAGE"),
        (("--history", "/none/x.jsonl"), "FILE_UNREADABLE"),
        (("--history", "-", "--costs", "19"), "USAGE"),
        (("--history", "-", "--costs", "0:1"), "USAGE"),
        (("--history", "-", "--policy", "best"), "FIELD_INVALID"),
    ],
)
def test_what_cannot_be_asked_is_bad_input(words: tuple[str, ...], want_reason: str) -> None:
    """With exit status 2 and a reason."""
    done = peakgate("calibration", "simulate", *words, "--output", "json", stdin=json.dumps(next(a_history(1))))
    assert (done.status, json.loads(done.out)["error"]["reason"]) == (2, want_reason)


def test_what_is_exported_can_be_replayed(tmp_path: Path) -> None:
    """A service's own past, as a file and from its database: the same answer."""
    database = f"sqlite:///{tmp_path}/peakgate.sqlite3"
    document: dict[str, Any] = yaml.safe_load((EXAMPLES / "textbook-1.3b.yaml").read_text())
    document["batch"]["micro_batch_size"], document["framework"]["name"] = 4, "deepspeed"
    with open_client(db=database) as client:
        for number in range(6):
            answer = client.predict(parse_job(document))
            peak = PeakSample(node="n1", gpu_uuid=UUID, job=str(number), prediction=answer.prediction, source="sampled", ended=True, uid=7)
            peak.peak_bytes = answer.peak.device_bytes * (1 + number / 100)
            client.report_peaks(ReportPeaksRequest(node=NodeInfo(cluster="c", node="n1"), sequence=number, peaks=[peak]))
    exported = peakgate("calibration", "export", "--db", database)
    assert [each["outcome"] for each in exported.objects] == ["finished"] * 6
    (tmp_path / "history.jsonl").write_text(exported.out)
    own = peakgate("calibration", "simulate", "--db", database, "--output", "json")
    replayed = peakgate("calibration", "simulate", "--history", tmp_path / "history.jsonl", "--output", "json")
    assert json.loads(own.out) == json.loads(replayed.out)
    assert json.loads(own.out)["attempts"] == 6
    assert peakgate("calibration", "export", "--db", database, "--since", "0s").out == ""
