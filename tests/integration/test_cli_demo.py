"""The demonstration is run as a newcomer runs it, and must tell its story to the end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("cc") is None, reason="the simulated NVML needs a C compiler: apt-get install gcc libc6-dev")
def test_the_demonstration_tells_its_story(tmp_path: Path) -> None:
    """One job fits, one does not and is told the cheapest fix, three runs are observed, the margin moves, nothing is left behind."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, ROOT / "examples/demo.py"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^  ADMIT  examples/", done.stdout, re.MULTILINE)
    assert re.search(r"^  REJECT  examples/", done.stdout, re.MULTILINE)
    assert "attention.implementation: flash" in done.stdout
    before, after = (float(bound) for bound in re.findall(r"^  (?:before|after): +([0-9.]+) GB", done.stdout, re.MULTILINE))
    assert after > before
    assert "compares another figure" in done.stdout
    assert done.stdout.count("finished") == 3
    assert [path.name for path in tmp_path.iterdir()] == []
