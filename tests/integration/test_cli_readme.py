"""What the README shows is what the command prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.cli import PEAKGATE, peakgate

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def words(text: str) -> list[str]:
    """Text without the line breaks and spaces of a page."""
    return text.split()


def test_the_example_output_is_the_real_one() -> None:
    """The block under the first command is, word for word, how the command's output begins."""
    (block,) = re.findall(r"```\n(REJECT.*?)\n  …\n```", README, re.DOTALL)
    done = peakgate("predict", "examples/textbook-1.3b.yaml", folder=ROOT)
    want = words(block)
    assert words(done.out)[: len(want)] == want


def test_the_example_request_is_answered(unused_tcp_port_factory: Callable[[], int], tmp_path: Path) -> None:
    """The curl line that a reader copies gets a verdict from a service as it is started by hand."""
    if shutil.which("curl") is None:
        pytest.skip("no curl (Debian: curl)")
    (line,) = re.findall(r"curl .*?}'", README, re.DOTALL)
    http_port = unused_tcp_port_factory()
    command = [str(PEAKGATE), "serve", "--port", "0", "--http-port", str(http_port), "--db", f"sqlite:///{tmp_path}/p.sqlite3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as service:
        assert service.stdout is not None
        try:
            assert b"serves" in service.stdout.readline()
            text = subprocess.run(["bash", "-c", line.replace("9551", str(http_port))], capture_output=True, check=True).stdout
        finally:
            service.terminate()
    assert json.loads(text)["verdict"] in ("ADMIT", "REJECT", "UNDECIDED")


def test_the_example_document_is_answered(tmp_path: Path) -> None:
    """The job document that a reader copies is a job that fits."""
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "job.yaml").write_text(block)
    done = peakgate("predict", tmp_path / "job.yaml")
    assert done.status == 0, done.out
