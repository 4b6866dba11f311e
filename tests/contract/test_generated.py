"""Generated files are what their generators make."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contract.sources import ROOT


def contents(folder: Path) -> dict[str, bytes]:
    """The generated files below a folder, by path."""
    files = (path for path in folder.rglob("*_pb2*") if path.suffix in {".py", ".pyi"})
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_protobuf_code_is_what_the_generator_makes(tmp_path: Path) -> None:
    """The checked-in code equals regenerated code byte for byte, with no file more or less."""
    subprocess.run([sys.executable, "proto/generate.py", str(tmp_path)], cwd=ROOT, check=True)
    want, got = contents(tmp_path), contents(ROOT / "proto")
    assert sorted(got) == sorted(want)
    assert [name for name in want if got[name] != want[name]] == [], "run `make gen`"


def test_the_dashboards_are_what_their_script_makes(tmp_path: Path) -> None:
    """The checked-in Grafana dashboards equal the generated ones, and there are no others."""
    subprocess.run([sys.executable, "deploy/grafana/build.py", str(tmp_path)], cwd=ROOT, check=True)
    want = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {path.name: path.read_text() for path in (ROOT / "deploy/grafana").glob("*.json")} == want, "run `make gen`"


def test_the_page_of_metrics_is_what_its_script_makes(tmp_path: Path) -> None:
    """The checked-in reference equals the tables in the code."""
    made = tmp_path / "metrics.md"
    subprocess.run([sys.executable, "deploy/prometheus/reference.py", str(made)], cwd=ROOT, check=True)
    assert (ROOT / "docs/metrics.md").read_text() == made.read_text(), "run `make gen`"


def test_the_chart_and_the_kustomize_base_are_what_their_script_makes(tmp_path: Path) -> None:
    """The chart's copies of rules and dashboards, and the base that helm renders, equal regenerated ones, with no file more or less."""
    if shutil.which("helm", path=str(Path(sys.executable).parent)) is None and shutil.which("helm") is None:
        pytest.skip("helm is missing: `make dev` brings it")
    subprocess.run([sys.executable, "deploy/helm/generate.py", str(tmp_path)], cwd=ROOT, check=True)
    want = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    written = {name: (ROOT / "deploy" / name).read_text() for name in want if (ROOT / "deploy" / name).exists()}
    assert written == want, "run `make gen`"
    assert {path.name for path in (ROOT / "deploy/helm/peakgate/files").iterdir()} == {
        Path(name).name for name in want if "/files/" in name
    }
