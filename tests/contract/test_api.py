"""The wire: its calls and field numbers are frozen, its style is linted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from tests.contract.sources import ROOT

# The calls that others rely on. One may be added here with its implementation; none may go.
CALLS = {
    "PredictionService": {"Predict", "Suggest", "GetPrediction", "ListPredictions"},
    "TelemetryService": {"ReportPeaks", "StreamPeaks", "ReportJobEvent", "ListCards"},
    "CalibrationService": {
        "GetCalibration",
        "ListCalibrations",
        "PromoteCalibration",
        "RollbackCalibration",
        "ListQuarantine",
        "ReportCalibration",
        "SimulateCalibration",
        "ExportHistory",
        "ShadowCalibration",
        "ReleaseObservation",
    },
    "CatalogService": {"ListModels", "ListGpus", "ListDefaults", "GetJobSchema"},
}
STREAMS = {"StreamPeaks", "SimulateCalibration"}
# The API as it was last published, made at a release by `python proto/generate.py --image api.binpb` and
# `buf build api.binpb --exclude-source-info -o tests/golden/api_v1.binpb`.
GOLDEN = ROOT / "tests/golden/api_v1.binpb"
BUF = Path(sys.executable).with_name("buf")


def buf(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs buf; its cache stays empty because images need no registry."""
    return subprocess.run([str(BUF), *map(str, arguments)], cwd=ROOT / "proto", capture_output=True, text=True, check=False)


def image_of(proto: Path, target: Path) -> Path:
    """The descriptor image of the .proto files beside a copy of the generator."""
    subprocess.run([sys.executable, str(proto / "generate.py"), "--image", str(target)], check=True)
    return target


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    """A copy of the .proto files that a test may spoil."""
    return Path(shutil.copytree(ROOT / "proto", tmp_path / "proto", ignore=shutil.ignore_patterns("*_pb2*", "__pycache__")))


def spoil(proto: Path, file: str, old: str, new: str) -> None:
    """Replaces text in one .proto file; the text must be there."""
    path = proto / "peakgate/v1" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_api_is_lint_clean(proto: Path, tmp_path: Path) -> None:
    """buf's standard rules hold, and every message, field and call has a comment."""
    done = buf("lint", image_of(proto, tmp_path / "api.binpb"), "--config", "buf.yaml")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "want_rule"),
    [
        ("message PredictRequest {", "message PredictRequest {\n  // A bad name.\n  string badName = 99;", "PredictRequest.badName"),
        ("  // The job.\n  TrainingJob job = 1;", "  TrainingJob job = 1;", "comment"),
    ],
)
def test_the_lint_can_fail(proto: Path, tmp_path: Path, old: str, new: str, want_rule: str) -> None:
    """A field that is not in snake_case, or has no comment, is found."""
    spoil(proto, "prediction_service.proto", old, new)
    done = buf("lint", image_of(proto, tmp_path / "api.binpb"), "--config", "buf.yaml")
    assert done.returncode == 100
    assert want_rule.rsplit(".", maxsplit=1)[-1] in done.stdout


def test_nothing_published_has_changed(proto: Path, tmp_path: Path) -> None:
    """Fields, numbers, types and calls of the golden image are all still there."""
    done = buf("breaking", image_of(proto, tmp_path / "api.binpb"), "--against", GOLDEN)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("prediction.proto", "int64 bound_bytes = 6;", "int64 bound_bytes = 66;"),
        ("prediction.proto", "int64 bound_bytes = 6;", "string bound_bytes = 6;"),
        ("telemetry_service.proto", "rpc ReportJobEvent(", "rpc ReportEvent("),
    ],
    ids=["number", "type", "call"],
)
def test_a_breaking_change_is_found(proto: Path, tmp_path: Path, file: str, old: str, new: str) -> None:
    """A new number, a new type and a renamed call each fail the comparison."""
    spoil(proto, file, old, new)
    assert buf("breaking", image_of(proto, tmp_path / "api.binpb"), "--against", GOLDEN).returncode == 100


def test_the_services_have_the_promised_calls(proto: Path, tmp_path: Path) -> None:
    """The list of calls is exactly the promised one, and so are those that stream."""
    image = descriptor_pb2.FileDescriptorSet.FromString(image_of(proto, tmp_path / "api.binpb").read_bytes())
    services = [service for file in image.file if file.package == "peakgate.v1" for service in file.service]
    assert {service.name: {call.name for call in service.method} for service in services} == CALLS
    calls = [call for service in services for call in service.method]
    assert {call.name for call in calls if call.client_streaming or call.server_streaming} == STREAMS
