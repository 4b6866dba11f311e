"""What the wheel and the installed project hold."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tests.contract.sources import CODE_ROOTS, ROOT, files


@pytest.fixture(scope="session")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built as `make package` builds it."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)], capture_output=True, text=True, check=False
    )
    if done.returncode and "hatchling" in done.stdout + done.stderr and "No matching distribution" in done.stdout + done.stderr:
        pytest.skip("the package index cannot be reached, so the build backend cannot be installed")
    assert done.returncode == 0, done.stdout + done.stderr
    return set(zipfile.ZipFile(next(folder.glob("*.whl"))).namelist())


def test_the_wheel_holds_every_file_of_the_four_roots(wheel_names: set[str]) -> None:
    """Code, types, .proto files, migrations and the simulated NVML all ship; nothing is left behind."""
    shipped = [path for path in files() for root in CODE_ROOTS if path.is_relative_to(ROOT / root / "peakgate")]
    want = {str(Path(*path.relative_to(ROOT).parts[1:])) for path in shipped}
    assert want - wheel_names == set()


def test_the_wheel_holds_nothing_else(wheel_names: set[str]) -> None:
    """Tests, deploy files and the namespace's forbidden __init__.py stay out."""
    assert {name.split("/")[0] for name in wheel_names if ".dist-info/" not in name} == {"peakgate"}
    assert "peakgate/__init__.py" not in wheel_names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_names)


def test_there_is_one_console_script() -> None:
    """`peakgate` is the only program that an install adds."""
    scripts = [point for point in distribution("peakgate").entry_points if point.group == "console_scripts"]
    assert [(point.name, point.value) for point in scripts] == [("peakgate", "peakgate.client.main:main")]


def test_each_part_has_its_extra() -> None:
    """The extras are those that the documentation names, and `all` leaves out only the tracer's torch."""
    assert set(distribution("peakgate").metadata.get_all("Provides-Extra") or []) == {
        "client",
        "server",
        "postgresql",
        "agent",
        "trace",
        "gate",
        "kubernetes",
        "all",
    }
