"""The HTTP doors of a service that runs as a process of its own, and its orderly end."""

from __future__ import annotations

import http.client
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.databases import Database

from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

JOB: dict[str, Any] = {
    "name": "tiny",
    "model": {"transformer": {"block": "gpt", "layers": 2, "hidden_size": 128, "heads": 4, "ffn_hidden_size": 512, "vocab_size": 1000}},
    "batch": {"micro_batch_size": 1, "sequence_length": 64},
    "framework": {"name": "textbook"},
    "gpu": {"type": "h100-80gb"},
}


def call(running: Any, method: str, path: str, body: bytes | None = None, content_type: str = "application/json") -> tuple[int, bytes]:
    """Status and body of a request."""
    connection = http.client.HTTPConnection(running.http, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": content_type} if body is not None else {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def post(running: Any, document: object, query: str = "", content_type: str = "application/json") -> tuple[int, dict[str, Any]]:
    """Status and JSON of POST /v1/predict; bytes are sent as they are."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    status, answer = call(running, "POST", f"/v1/predict{query}", body, content_type)
    parsed: dict[str, Any] = json.loads(answer)
    return status, parsed


def test_health_readiness_metrics_and_grpcs_own_services(running: Any) -> None:
    """What an operator's tools ask."""
    assert call(running, "GET", "/healthz") == (200, b"ok\n")
    status, text = call(running, "GET", "/readyz")
    assert (status, text.splitlines()[0]) == (200, b"ready")
    post(running, JOB)
    status, text = call(running, "GET", "/metrics")
    assert status == 200
    assert re.search(rb'peakgate_verdicts_total\{source="http",verdict="ADMIT"\} [1-9]', text)
    with grpc.insecure_channel(running.grpc) as channel:
        for name in ("", "peakgate.v1.PredictionService"):
            checked = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=name))
            assert checked.status == health_pb2.HealthCheckResponse.SERVING
        ask = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        answer = next(reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(ask))
        assert "peakgate.v1.TelemetryService" in {each.name for each in answer.list_services_response.service}


def test_predict_speaks_the_same_json_both_ways(running: Any) -> None:
    """Numbers as numbers, defaults kept, the verdict without its prefix."""
    status, answer = post(running, JOB)
    assert (status, answer["verdict"]) == (200, "ADMIT")
    assert isinstance(answer["peak"]["required_bytes"], int)
    assert answer["oom_phase"] == ""
    assert answer["prediction"].startswith("predictions/")
    assert post(running, JOB, "?validate_only=true")[1]["prediction"] == ""
    assert post(running, JOB, "?brief=true")[1]["timeline"] == []


def test_a_bad_document_is_one_error_with_every_field(running: Any) -> None:
    """And the service goes on."""
    bad = JOB | {"batch": {"micro_batch_size": -1, "sequnce_length": 64}, "optimizer": 3}
    status, answer = post(running, bad)
    error = answer["error"]
    assert (status, error["code"], error["reason"]) == (400, "INVALID_ARGUMENT", "FIELD_INVALID")
    assert {each["field"] for each in error["fields"]} == {"batch.sequnce_length", "optimizer", "batch.micro_batch_size"}
    assert post(running, JOB)[0] == 200


@pytest.mark.parametrize(
    ("document", "want_status", "want_reason", "want_field"),
    [
        ({}, 400, "FIELD_INVALID", "model"),
        (JOB | {"model": {"preset": "gpt2", "parameters": 3}}, 400, "FIELD_INVALID", "model"),
        (JOB | {"model": {"preset": "gpt-two"}}, 404, "MODEL_UNKNOWN", "model.preset"),
        (JOB | {"gpu": {"type": "h100-80bg"}}, 404, "ACCELERATOR_UNKNOWN", "gpu.type"),
        (JOB | {"batch": {"micro_batch_size": -1}}, 400, "FIELD_INVALID", "batch.micro_batch_size"),
        (JOB | {"batch": {"micro_batch_size": 10**30}}, 400, "FIELD_INVALID", "batch.micro_batch_size"),
        (JOB | {"dropout": {"hidden": float("nan")}}, 400, "FIELD_INVALID", "dropout.hidden"),
        (JOB | {"parallelism": {"world_size": 6, "tensor": 4}}, 400, "PARALLELISM_MISMATCH", "parallelism.world_size"),
    ],
)
def test_each_kind_of_bad_document(document: object, want_status: int, want_reason: str, want_field: str, running: Any) -> None:
    """Status, reason and field."""
    status, answer = post(running, document)
    assert (status, answer["error"]["reason"]) == (want_status, want_reason)
    assert want_field in {each["field"] for each in answer["error"]["fields"]}


@pytest.mark.parametrize("body", [b"", b"layers: 3", b"[1]", b"3", b"{", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xff\xfe"])
def test_a_body_that_is_no_json_object_is_refused(body: bytes, running: Any) -> None:
    """Also one that is nested too deeply, or holds a number of thousands of digits."""
    status, answer = post(running, body)
    assert (status, answer["error"]["reason"]) == (400, "BODY_NOT_JSON")
    assert not any(word in answer["error"]["message"] for word in ("recursion", "sys.", "codec"))
    assert post(running, JOB)[0] == 200


def test_a_key_that_is_stated_twice_is_refused(running: Any) -> None:
    """Which of the two counts would be a guess."""
    status, answer = post(running, b'{"model": {"preset": "gpt2"}, "gpu": {"type": "t4-16gb", "type": "h100-80gb"}}')
    assert (status, answer["error"]["reason"]) == (400, "FIELD_INVALID")
    assert [each["field"] for each in answer["error"]["fields"]] == ["type"]


def test_a_ten_megabyte_body_is_refused(running: Any) -> None:
    """413, read no further than the limit, and the service goes on."""
    status, answer = post(running, b'{"name": "' + b"x" * 10_000_000 + b'"}')
    assert (status, answer["error"]["reason"]) == (413, "DOCUMENT_TOO_LARGE")
    assert post(running, JOB)[0] == 200


def test_another_content_type_is_refused(running: Any) -> None:
    """415 with the one that is taken."""
    status, answer = post(running, JOB, content_type="application/x-yaml")
    assert (status, answer["error"]["reason"]) == (415, "CONTENT_TYPE_UNSUPPORTED")
    assert "application/json" in answer["error"]["message"]


def test_a_bad_query_is_refused(running: Any) -> None:
    """A flag that is no truth value, a request id that is no UUID."""
    assert post(running, JOB, "?brief=maybe")[1]["error"]["fields"][0]["field"] == "brief"
    assert post(running, JOB, "?request_id=job-1")[1]["error"]["fields"][0]["field"] == "request_id"


def test_a_rejected_job_is_tried_over_http(running: Any) -> None:
    """`user` and `try_reason` stand in the query; the answer has `try_anyway` then, and only then."""
    big = JOB | {"batch": {"micro_batch_size": 2**20, "sequence_length": 64}, "attention": {"implementation": "eager"}}
    big = big | {"checkpointing": {"mode": "none"}}
    assert "try_anyway" not in post(running, big)[1]
    status, answer = post(running, big, "?user=c%2F7&try_reason=the+paper+says+so")
    assert (status, answer["verdict"]) == (200, "REJECT")
    assert (answer["try_anyway"]["granted"], answer["try_anyway"]["left"]) == (True, 2)
    assert post(running, big, "?user=c%2F7%00&try_reason=x")[1]["error"]["fields"][0]["field"] == "user"


def test_a_stop_is_orderly(run_service: Any, database: Database, a_job: Callable[..., TrainingJob]) -> None:
    """SIGTERM: exit status 0, and every answered prediction is in the database."""
    with run_service() as running, grpc.insecure_channel(running.grpc) as channel:
        stub = PredictionServiceStub(channel)
        want_names = {stub.Predict(pb.PredictRequest(job=a_job())).prediction for _ in range(200)}
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == 0
        assert "Traceback" not in running.process.stderr.read()
    assert {row[0] for row in database.rows("SELECT prediction FROM predictions")} == want_names


@pytest.mark.parametrize(
    ("arguments", "want_status", "want_text"),
    [
        ("database_url='mysql://host/name'", 4, "use SQLite or PostgreSQL"),
        ("database_url='sqlite:////proc/none/store.sqlite3'", 4, "choose a folder you may write to"),
        ("grpc_port=70000", 2, "PEAKGATE_GRPC_PORT"),
        ("host='256.0.0.1', database_url='sqlite:///{tmp}/s.sqlite3'", 4, "cannot listen on"),
    ],
)
def test_a_service_that_cannot_start_says_why(arguments: str, want_status: int, want_text: str, tmp_path: Path) -> None:
    """One line on standard error, and an exit status that a unit file can act on."""
    code = f"from peakgate.server.main import run_server; raise SystemExit(run_server({arguments.format(tmp=tmp_path)}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == want_status
    assert want_text in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
def test_a_second_server_on_one_file_is_refused(run_service: Any, tmp_path: Path) -> None:
    """The reason and both ways out; when the first has ended, the file is free."""
    arguments = f"grpc_port=0, http_port=0, database_url='sqlite:///{tmp_path}/store.sqlite3'"
    code = f"from peakgate.server.main import run_server; raise SystemExit(run_server({arguments}))"
    with run_service():
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert found.returncode == 4
        assert "another server uses" in found.stderr
        assert "PostgreSQL" in found.stderr
    with run_service() as again:
        assert post(again, JOB)[0] == 200


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
def test_a_database_that_cannot_be_written_is_not_ready(run_service: Any, tmp_path: Path) -> None:
    """Somebody holds the file: soon the answers say so, a load balancer is told, and what could not be written is logged at the stop."""
    with run_service() as running:
        blocker = sqlite3.connect(tmp_path / "store.sqlite3", isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        post(running, JOB)
        until = time.monotonic() + 8
        while not any("away or slow" in text for text in post(running, JOB)[1]["warnings"]):
            assert time.monotonic() < until
            time.sleep(0.2)
        status, text = call(running, "GET", "/readyz")
        assert (status, text.split(b":")[0]) == (503, b"not ready")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == 0
        assert "predictions were not stored" in running.process.stderr.read()
        blocker.close()


def test_a_taken_port_is_named(running: Any, tmp_path: Path) -> None:
    """Two services on one port would answer in turns."""
    port = running.grpc.rpartition(":")[2]
    arguments = f"grpc_port={port}, http_port=0, database_url='sqlite:///{tmp_path}/s.sqlite3'"
    code = f"from peakgate.server.main import run_server; raise SystemExit(run_server({arguments}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 4
    assert port in found.stderr
