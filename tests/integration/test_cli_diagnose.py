"""`peakgate diagnose` as a person or a script calls it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.integration.cli import EXAMPLES, peakgate
from tests.integration.test_cli_width import COLUMNS, on_a_terminal

LOG = """  0%|          | 0/600 [00:00<?, ?it/s]
Traceback (most recent call last):
  File "/home/u/train.py", line 9, in <module>
    loss.backward()
  File "/venv/torch/autograd/graph.py", line 824, in _engine_run_backward
    return Variable._execution_engine.run_backward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.07 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free. \
Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated memory 77.10 GiB is allocated by PyTorch, and \
211.10 MiB is reserved by PyTorch but unallocated.
"""
STAGES = ("load", "setup", "forward", "loss", "backward", "first-step", "longer-context", "hours-later", "evaluation", "generation", "save")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a job whose backward pass asked for the float32 logits of 16,384 tokens and 50,257 words."""
    path = tmp_path / "train.log"
    path.write_text(LOG)
    return path


def test_a_log_with_its_job(log: Path) -> None:
    """Stage, tensor, prediction, fixes of the job and what does not help, with exit status 0."""
    done = peakgate("diagnose", log, EXAMPLES / "textbook-1.3b.yaml")
    assert (done.status, done.err) == (0, "")
    for want in ("in the backward pass", "graph.py:824", "logits", "What acts on it in", "What does not help", "first step"):
        assert want in done.out


def test_a_log_alone_and_from_standard_input(log: Path) -> None:
    """Without a job the words are general; `-` reads the log from a pipe; JSON alone is on standard output."""
    done = peakgate("diagnose", "-", "--output", "jsonl", stdin=log.read_text())
    (value,) = done.objects
    assert done.status == 0
    assert (value["stage"], value["category"], value["tensors"], value["suggestions"]) == ("backward", "activations", [], [])
    assert "What acts on it" in done.err


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_alone(stage: str) -> None:
    """Each stage that can be named is answered."""
    done = peakgate("diagnose", "--stage", stage, "--output", "json")
    value = json.loads(done.out)
    assert (done.status, value["stage"], value["told_by"]) == (0, stage, "user")
    assert value["helps"]
    assert value["helps_not"]


def test_a_stage_with_a_job() -> None:
    """One word beside --stage is the job: its fixes for that stage are shown, and no other."""
    done = peakgate("diagnose", "--stage", "first-step", EXAMPLES / "textbook-1.3b.yaml", "--output", "json")
    value = json.loads(done.out)
    assert value["ledger"][0]["category"] == "optimizer_states"
    assert not any(set(each["changes"]) <= {"attention.implementation", "checkpointing.mode"} for each in value["suggestions"])


def test_a_launch_command_is_a_job(log: Path) -> None:
    """Behind -- stands what was run."""
    words = shlex.split("python run_clm.py --model_name_or_path gpt2 --do_train --block_size 1024 --per_device_train_batch_size 16")
    done = peakgate("diagnose", log, "--output", "json", "--", *words)
    value = json.loads(done.out)
    assert done.status == 0
    assert value["tensors"][0]["item"] == "logits, float32"
    assert value["tensors"][0]["bytes"] == 16 * 1024 * 50257 * 4


@pytest.mark.parametrize(
    ("arguments", "want"),
    [((), "--stage"), (("good.log",), "shows no failure"), (("missing.log",), "cannot be read"), (("good.log", "a", "b"), "one job")],
)
def test_nothing_to_say_is_status_2(tmp_path: Path, arguments: tuple[str, ...], want: str) -> None:
    """A log without a failure, no log at all, or too many files are bad input, and the remedy is named."""
    (tmp_path / "good.log").write_text("step 1 loss 2.0\n")
    done = peakgate("diagnose", *arguments, folder=tmp_path)
    assert done.status == 2
    assert want in done.err


def test_a_service_that_is_away_leaves_the_log(log: Path, unused_tcp_port: int) -> None:
    """What the log says is said all the same, and the job's absence is on standard error; a bad job is an error."""
    done = peakgate("diagnose", log, EXAMPLES / "textbook-1.3b.yaml", "--server", f"127.0.0.1:{unused_tcp_port}")
    assert done.status == 0
    assert "in the backward pass" in done.out
    assert "the job is left out" in done.err
    assert peakgate("diagnose", log, "-", stdin='{"bath": 1}').status == 2


def test_it_fits_the_terminal(log: Path) -> None:
    """80 columns are enough for all but names of fields to be copied."""
    for arguments in ([log, EXAMPLES / "textbook-1.3b.yaml"], ["--stage", "hours-later"]):
        lines = on_a_terminal("diagnose", *arguments)
        wide = [line for line in lines if len(line.rstrip()) > COLUMNS and not re.search(r"textbook-1\.3b\.yaml", line)]
        assert wide == []
