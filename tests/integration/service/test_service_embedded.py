"""The service inside a command."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from peakgate.server.embedded import open_embedded
from peakgate.server.errors import PeakgateError
from peakgate.v1 import catalog_service_pb2 as catalog_pb
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1 import telemetry_service_pb2 as telemetry_pb
from peakgate.v1.catalog_service_pb2_grpc import CatalogServiceStub
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

HEAVY = ("sqlalchemy", "alembic", "uvicorn", "starlette", "pydantic", "structlog", "prometheus_client")

SITE = """- name: acme-small
  transformer: {block: llama, layers: 2, hidden_size: 64, heads: 4, ffn_hidden_size: 96, vocab_size: 100}
  aliases: [acme/Acme-Small]
"""


def predict(database_url: str | None, job: TrainingJob) -> PredictResponse:
    """One prediction of a service that lives as long as the call."""
    with open_embedded(database_url) as target, grpc.insecure_channel(target) as channel:
        answer: PredictResponse = PredictionServiceStub(channel).Predict(pb.PredictRequest(job=job))
        return answer


def test_without_a_database_it_keeps_nothing(a_job: Callable[..., TrainingJob]) -> None:
    """The same answer, and no name that could be looked up."""
    answer = predict(None, a_job(attention="eager"))
    assert answer.prediction == ""
    assert answer.reason.startswith("activations")
    assert answer.suggestions[0].fits


def test_without_a_database_it_acknowledges_no_observation() -> None:
    """An acknowledgement says that a row was committed."""
    sample = telemetry_pb.PeakSample(node="n", gpu_uuid="GPU-0000", peak_bytes=1e9)
    batch = telemetry_pb.ReportPeaksRequest(node=telemetry_pb.NodeInfo(node="n"), peaks=[sample])
    with open_embedded(None) as target, grpc.insecure_channel(target) as channel, pytest.raises(grpc.RpcError) as caught:
        TelemetryServiceStub(channel).ReportPeaks(batch)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_with_a_database_it_keeps_what_it_predicts(a_job: Callable[..., TrainingJob], tmp_path: Path) -> None:
    """Another embedded service, later, finds it."""
    url = f"sqlite:///{tmp_path / 'store.sqlite3'}"
    want_answer = predict(url, a_job())
    with open_embedded(url) as target, grpc.insecure_channel(target) as channel:
        stub = PredictionServiceStub(channel)
        assert stub.GetPrediction(pb.GetPredictionRequest(prediction=want_answer.prediction)).prediction == want_answer


def test_commands_that_share_a_database_share_request_ids(a_job: Callable[..., TrainingJob], tmp_path: Path) -> None:
    """A hook that is run again after a timeout gets the first answer, with its name."""
    url = f"sqlite:///{tmp_path / 'store.sqlite3'}"
    answers = []
    for _ in range(2):
        with open_embedded(url) as target, grpc.insecure_channel(target) as channel:
            request = pb.PredictRequest(job=a_job(attention="eager"), request_id=str(uuid.UUID(int=1)))
            answers.append(PredictionServiceStub(channel).Predict(request))
    assert answers[0] == answers[1]
    assert answers[0].prediction


def test_a_database_that_cannot_be_used_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(PeakgateError, match="use SQLite or PostgreSQL"), open_embedded("mysql://host/name"):
        pytest.fail("it was opened")


def test_the_operators_reserve_holds_in_a_command_too(a_job: Callable[..., TrainingJob], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same settings, the same verdict."""
    plain = predict(None, a_job())
    monkeypatch.setenv("PEAKGATE_OPERATOR_RESERVE_BYTES", "1000")
    assert predict(None, a_job()).capacity.usable_bytes == plain.capacity.usable_bytes - 1000


def test_it_knows_the_models_of_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PEAKGATE_MODELS names them; they are listed with their place, predicted by an alias, and gone with the variable."""
    path = tmp_path / "models.yaml"
    path.write_text(SITE)
    monkeypatch.setenv("PEAKGATE_MODELS", str(path))
    job = TrainingJob()
    job.model.preset = "acme/Acme-Small"
    job.batch.micro_batch_size, job.batch.sequence_length, job.gpu.type = 1, 128, "h100-80gb"
    with open_embedded(None) as target, grpc.insecure_channel(target) as channel:
        listed = {model.name: model for model in CatalogServiceStub(channel).ListModels(catalog_pb.ListModelsRequest()).models}
        answer = PredictionServiceStub(channel).Predict(pb.PredictRequest(job=job))
    assert (listed["acme-small"].parameters, listed["acme-small"].source) == (82752, f"{path}:1")
    assert answer.model.parameters == 82752
    monkeypatch.delenv("PEAKGATE_MODELS")
    with pytest.raises(grpc.RpcError, match="unknown model"):
        predict(None, job)


def test_bad_models_of_the_site_stop_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable, the file, the line and the field."""
    path = tmp_path / "models.yaml"
    path.write_text(SITE.replace("layers", "layer"))
    monkeypatch.setenv("PEAKGATE_MODELS", str(path))
    with pytest.raises(PeakgateError, match=r"PEAKGATE_MODELS: .*models.yaml:2: transformer.layer: ") as caught, open_embedded(None):
        pass
    assert caught.value.reason == "SETTING_INVALID"


def test_only_this_user_can_open_its_socket() -> None:
    """The folder is private."""
    with open_embedded(None) as target:
        folder = Path(target.removeprefix("unix:")).parent
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_a_command_without_a_database_does_not_pay_for_one() -> None:
    """Its cold start is part of the contract."""
    code = f"""
import sys
import uuid
from peakgate.server.embedded import open_embedded
with open_embedded(None):
    print(sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PEAKGATE_")}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.strip() == "[]"
