"""The rules of tests/conftest.py, seen on a small suite of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPS = "import pytest\n\ndef test_a():\n    pytest.skip('no database')\n"
SKIPS_WHILE_COLLECTED = "import pytest\npytest.skip('no database', allow_module_level=True)\n"
FAILS_AS_EXPECTED = "import pytest\n\n@pytest.mark.xfail\ndef test_a():\n    assert False\n"
OPTIONAL = "import pytest\n\n@pytest.mark.torch\ndef test_a():\n    pass\n\ndef test_b():\n    pass\n"


def run_suite(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a suite of one file under the project's conftest, in a fresh process."""
    shutil.copy(CONFTEST, folder)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (folder / "test_small.py").write_text(text)
    clean = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PEAKGATE_TEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder)],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("text", [SKIPS, SKIPS_WHILE_COLLECTED], ids=["test", "module"])
def test_a_skip_says_why_and_fails_in_ci(tmp_path: Path, text: str) -> None:
    """A person sees the reason; in CI the same skip is a failure."""
    here, ci = run_suite(tmp_path, text), run_suite(tmp_path, text, CI="true")
    assert here.returncode in {0, 5}  # 5: nothing was collected
    assert "no database" in here.stdout
    assert ci.returncode not in {0, 5}
    assert "in CI nothing may skip" in ci.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    """A test that is known to fail may do so in CI."""
    assert run_suite(tmp_path, FAILS_AS_EXPECTED, CI="true").returncode == 0


def test_optional_tests_run_only_when_asked_for(tmp_path: Path) -> None:
    """Without its variable a marked test is not collected, which is no skip, and the header says so."""
    without, with_it = run_suite(tmp_path, OPTIONAL, CI="true"), run_suite(tmp_path, OPTIONAL, CI="true", PEAKGATE_TEST_TORCH="1")
    assert "1 passed, 1 deselected" in without.stdout
    assert "PEAKGATE_TEST_TORCH=1" in without.stdout
    assert "2 passed" in with_it.stdout
