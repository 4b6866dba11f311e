"""The helper in real trainings: transformers' Trainer, Accelerate and two ranks, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.helper_programs import LENGTH
from tests.unit.client.torch.fakes import GIB, Inbox

from peakgate.v1.allocator_report import AllocatorReport

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.torch


def start(name: str, socket_path: str, **environment: str) -> subprocess.Popen[str]:
    """A program of helper_programs."""
    command = [sys.executable, "-m", "tests.integration.helper_programs", name, socket_path]
    return subprocess.Popen(
        command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[dict[str, object], str]:
    """What it printed at its end, and its standard error."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    result: dict[str, object] = json.loads(out.splitlines()[-1])
    return result, err


def phases(report: AllocatorReport) -> dict[str, float]:
    """Allocated GiB by phase."""
    return {each.phase: each.allocated_bytes / GIB for each in report.phases}


def test_a_trainer_of_transformers(tmp_path: Path) -> None:
    """Predicted before step 0, in one line; loading, forward and backward told apart; the hooks gone at the end; no gRPC loaded."""
    inbox = Inbox(tmp_path / "agent.sock")
    result, err = finish(start("trainer", inbox.path))
    assert result == {"answer": "ADMIT", "hooks_left": 0, "failures": 0, "loaded": []}
    lines = [line for line in err.splitlines() if line.startswith("peakgate: ")]
    assert len(lines) == 1
    assert lines[0].startswith("peakgate: ADMIT: fits: the worst GPU needs")
    last = inbox.reports()[-1]
    assert (last.steps_done, last.longest_sequence, phases(last)) == (3, LENGTH, {"load": 2, "forward": 3, "backward": 3.5})
    inbox.socket.close()


def test_a_loop_with_accelerate(tmp_path: Path) -> None:
    """Eight batches are four optimizer steps, as Accelerate itself counts them."""
    inbox = Inbox(tmp_path / "agent.sock")
    result, _ = finish(start("accelerate", inbox.path))
    assert result == {"answer": "UNDECIDED", "failures": 0, "loaded": []}  # a bare number of parameters
    assert [(report.steps_done, report.allocated_bytes / GIB) for report in inbox.reports()][-1] == (4, 3.5)
    inbox.socket.close()


def test_ranks_share_one_prediction(tmp_path: Path) -> None:
    """Rank 0 asks and says the line; rank 1 takes the name from the store of the process group."""
    ranks = [start("two_ranks", str(tmp_path / "s"), RANK=str(rank)) for rank in (0, 1)]
    (first, first_err), (second, second_err) = map(finish, ranks)
    want = {"prediction": "predictions/shared", "failures": 0, "loaded": []}
    assert (first, second) == (want, want)
    assert (first_err.count("peakgate: ADMIT: fits"), second_err.count("peakgate: ")) == (1, 0)
