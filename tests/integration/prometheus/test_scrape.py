"""Every expression of every rule and panel, asked of a real Prometheus that has scraped real processes with something to tell."""

from __future__ import annotations

import json
import math
import shutil
import socket
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from tests.admission_reviews import a_review, stating
from tests.integration.kubernetes.api_server import KUEUE
from tests.integration.kubernetes.kueue_objects import SMALL, a_cluster, a_workload
from tests.integration.prometheus.programs import (
    Prometheus,
    running_agent,
    running_controller,
    running_prometheus,
    running_service,
    until,
)
from tests.integration.slurm.gate import running_gate
from tests.promql import Expression, expressions, selectors
from tests.unit.hooks.slurm.building import TRAINING
from tests.webhooks import running_webhook

from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1 import telemetry_service_pb2 as telemetry
from peakgate.v1.document import parse_job
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

ABSENT = ("apiserver_",)
"""What no process here exposes: a real API server. The cases of rule_cases.yml hold its rules."""
GPU = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a70"
TOTAL_BYTES = 85_520_809_984

JOB = {
    "name": "small",
    "model": {"preset": "llama-3.2-1b"},
    "batch": {"micro_batch_size": 1, "sequence_length": 1024},
    "gpu": {"type": "h100-80gb"},
}
TOO_LARGE = JOB | {"batch": {"micro_batch_size": 4096, "sequence_length": 8192}}
UNKNOWN_CARD = {key: value for key, value in JOB.items() if key != "gpu"}


@dataclass(frozen=True, slots=True)
class Scraped:
    """Prometheus, with what was told to the service."""

    prometheus: Prometheus
    rejected: PredictResponse


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """Programs that run, with load between two scrapes."""
    for program, package in (("prometheus", "prometheus"), ("cc", "gcc libc6-dev")):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} (Debian: {package})")
    folder = tmp_path_factory.mktemp("scraped")
    with ExitStack() as stack:
        server, http = stack.enter_context(running_service(folder))
        agent = stack.enter_context(running_agent(folder, server))
        with ThreadPoolExecutor() as pool:  # each takes seconds to start
            asks = ("--server", server, "--no-beside")
            starting = pool.submit(stack.enter_context, running_gate(folder, "mode: shadow\n", *asks))
            webhook = stack.enter_context(running_webhook(folder, "mode: warn\n", *asks))
            gate = starting.result()
        cluster = a_cluster()
        controller = stack.enter_context(running_controller(cluster, server))
        ports = {"agent": agent, "gate": gate.port, "webhook": webhook.metrics_port, "kueue": controller}
        targets = {"peakgate-server": http} | {f"peakgate-{name}": f"localhost:{port}" for name, port in ports.items()}
        prometheus = stack.enter_context(running_prometheus(folder, targets))
        rejected = _load(server, http)
        _submit(gate.socket)
        webhook.ask(json.dumps(a_review(stating("Job", JOB))).encode())
        cluster.put(KUEUE, "workloads", a_workload(job=SMALL))
        until(lambda: prometheus.value("gpu_model_framework:peakgate_observed_over_predicted_ratio:p95_1d") > 0, what="an observed job")
        until(lambda: prometheus.value("min(peakgate_agent_answered_timestamp_seconds)") > 0, what="an agent that was answered")
        until(lambda: prometheus.value("peakgate_gate_unchecked:ratio15m") >= 0, what="a decision of the gate")
        until(lambda: prometheus.value("peakgate_webhook_unchecked:ratio15m") >= 0, what="a review")
        until(lambda: prometheus.value("sum(peakgate_kueue_decisions_total)") > 0, what="a state of a workload")
        yield Scraped(prometheus, rejected)


def _load(server: str, http: str) -> PredictResponse:
    """Answers of each kind by each door, an error, a try, and ended jobs: as predicted, beyond their bound, and out of memory."""
    with grpc.insecure_channel(server) as channel:
        predictions = PredictionServiceStub(channel)
        answers = [predictions.Predict(pb.PredictRequest(job=parse_job(job))) for job in (JOB, JOB, JOB, UNKNOWN_CARD)]
        rejected = predictions.Predict(pb.PredictRequest(job=parse_job(TOO_LARGE), user="c/1", try_reason="a deadline"))
    with pytest.raises(urllib.request.HTTPError):
        _post(http, JOB | {"gpu": {"type": "h9000"}})
    _post(http, JOB)
    with grpc.insecure_channel(server) as channel:
        reports = TelemetryServiceStub(channel)
        for number, (share, event) in enumerate([(1.0, "finished"), (1.6, "finished"), (1.9, "oom")]):
            answer, job = answers[number], str(number)
            peak = telemetry.PeakSample(
                node="n1", gpu_uuid=GPU, gpu_total_bytes=TOTAL_BYTES, job=job, prediction=answer.prediction,
                peak_bytes=answer.peak.device_bytes * share, source="sampled", ended=True,
            )  # fmt: skip
            wrong = telemetry.PeakSample(node="n1", gpu_uuid="no uuid", peak_bytes=1)
            reports.ReportPeaks(telemetry.ReportPeaksRequest(node=telemetry.NodeInfo(cluster="c", node="n1"), peaks=[peak, wrong]))
            reports.ReportJobEvent(telemetry.ReportJobEventRequest(cluster="c", job=job, prediction=answer.prediction, event=event))
    return rejected


def _post(http: str, job: object) -> None:
    body = json.dumps(job).encode()
    request = urllib.request.Request(f"http://{http}/v1/predict", data=body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30):
        pass


def _submit(gate: Path) -> None:
    """A submission, as the controller's hook sends it."""
    fields = {"tres_per_node": "gres:gpu:h100:1", "partition": "gpu", "name": "pretrain"}
    request = {"v": 1, "op": "submit", "uid": 1001, "cluster": "c", "fields": fields, "script": TRAINING}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(gate))
        connection.sendall(json.dumps(request).encode() + b"\n")
        assert connection.recv(4096)


def asked(expression: Expression) -> list[str]:
    """What must have a series: the expression, or what an alert's condition reads, since that is empty while all is well."""
    if expression.is_condition:
        return [each.text for each in selectors(expression.text)]
    return [expression.text]


def is_absent(text: str) -> bool:
    """Whether it asks for what runs in a cluster alone."""
    return any(name in text for name in ABSENT)


def test_every_expression_has_a_series(scraped: Scraped) -> None:
    """Of every rule and every panel."""
    asked_for = {text: each.place for each in expressions() for text in asked(each) if not is_absent(text)}
    assert len(asked_for) > 90
    assert [f"{place}: {text}" for text, place in asked_for.items() if not scraped.prometheus.query(text)] == []


def test_what_was_done_is_what_is_shown(scraped: Scraped) -> None:
    """Counted by who asked, by GPU and framework; what went wrong is seen as that."""
    value = scraped.prometheus.value
    assert scraped.rejected.try_anyway.granted
    assert value('peakgate_verdicts_total{source="grpc",verdict="ADMIT"}') == 3
    assert value('peakgate_verdicts_total{source="grpc",verdict="REJECT"}') == 1
    assert value('peakgate_verdicts_total{source="grpc",verdict="UNDECIDED"}') == 1
    assert value('sum(peakgate_verdicts_total{source="kubernetes"})') >= 2
    assert value('peakgate_verdicts_total{source="http",verdict="ADMIT"}') == 1
    assert value('sum(peakgate_verdicts_total{source="slurm"})') == 1
    assert value('peakgate_requests_refused_total{reason="ACCELERATOR_UNKNOWN"}') == 1
    assert value('peakgate_tries_total{outcome="granted"}') == 1
    assert value('peakgate_peaks_refused_total{reason="UUID_INVALID"}') == 3
    assert value('peakgate_needs_total{gpu_model="h100",framework="huggingface",bound="held"}') == 1
    assert value('peakgate_needs_total{gpu_model="h100",framework="huggingface",bound="passed"}') >= 1
    assert 0.9 < value('gpu_model_framework:peakgate_observed_over_predicted_ratio:p50_1d{gpu_model="h100"}') <= 2
    assert value('peakgate_calibration_margin_ratio{gpu_model="h100",framework="huggingface"}') > 0
    assert value('sum(peakgate_gate_decisions_total{mode="shadow"})') == 1
    assert value('peakgate_webhook_reviews_total{kind="Job",verdict="admit",outcome="allowed"}') == 1
    assert value("min(peakgate_webhook_certificate_expiry_timestamp_seconds) - time()") > 14 * 86_400
    assert value('peakgate_kueue_decisions_total{reason="fits"}') == 1


def test_every_rule_is_evaluated(scraped: Scraped) -> None:
    """Without an error, and none of them wakes anybody."""
    rules = [rule for group in scraped.prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError", "") for rule in rules if rule["health"] != "ok"} == {}
    assert scraped.prometheus.query('ALERTS{alertstate="firing",severity="page"}') == []
    assert not math.isnan(scraped.prometheus.value("min(peakgate_store_up)"))


@pytest.mark.parametrize("text", [each for each in (e.text for e in expressions()) if is_absent(each)], ids=lambda text: text[:60])
def test_what_runs_in_a_cluster_alone_is_said(text: str) -> None:
    """An expression is left out above only for what it reads, not for what it is called."""
    assert any(each.text.startswith(ABSENT) for each in selectors(text))
