"""What the controller can know of a job without opening a file."""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hooks.slurm.building import TRAINING, a_submission

from peakgate.hooks.slurm.attached import SCRIPT_HEAD
from peakgate.hooks.slurm.reading import CUT_OFF, MOST_WORDS, NAMES_FILES, read_submission, request_flags


def test_a_script_is_read_under_the_request_of_the_submission() -> None:
    """Options of sbatch's command line win over the script's lines: two nodes of eight, not one of four."""
    script = TRAINING.replace("torchrun", "#SBATCH --nodes=1 --gpus-per-node=4\ntorchrun", 1)
    found = read_submission(a_submission(tres_per_node="gres:gpu:8", min_nodes=2, max_nodes=2), script, (), "")
    assert found.job is not None
    assert (found.job.parallelism.world_size, found.job.gpu.count, found.job.node.gpus) == (16, 16, 8)
    assert not found.is_partial


@pytest.mark.parametrize(
    "script", ["#!/bin/bash\nhostname\n", "#!/bin/bash\npython -m http.server\n", "#!/bin/bash\nsrun ./train_nothing\n", ""]
)
def test_no_training_is_no_job(script: str) -> None:
    """Without a word."""
    found = read_submission(a_submission(), script, ("bash",), "")
    assert (found.job, found.problem) == (None, "")


def test_a_command_and_a_comment_are_read() -> None:
    """A comment stands for a command that no reader knows, too."""
    argv = tuple(TRAINING.split("\n", 1)[1].replace("\\\n", "").replace("$SLURM_GPUS_ON_NODE", "2").replace("$SLURM_NNODES", "1").split())
    by_command = read_submission(a_submission(), "", argv, "")
    assert by_command.job is not None
    assert by_command.job.batch.micro_batch_size == 1
    for words in ((), ("jupyter", "lab")):
        by_comment = read_submission(a_submission(), "", words, "model.preset=gpt2 batch.micro_batch_size=7")
        assert by_comment.job is not None
        assert (by_comment.job.model.preset, by_comment.job.batch.micro_batch_size) == ("gpt2", 7)


def test_what_a_comment_states_wins_over_the_script() -> None:
    """Nearest to the submission."""
    found = read_submission(a_submission(), TRAINING, (), "batch.micro_batch_size=3")
    assert found.job is not None
    assert found.job.batch.micro_batch_size == 3


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every attempt to open or look at a file, none of which is let through."""
    tried: list[str] = []

    def refuse(path: object, *_: object, **__: object) -> object:
        tried.append(str(path))
        raise AssertionError(f"opened {path}")

    monkeypatch.setattr(builtins, "open", refuse)
    for name in ("open", "is_file", "is_dir", "exists", "stat", "read_text"):
        monkeypatch.setattr(Path, name, refuse)
    return tried


@pytest.mark.parametrize(
    "more",
    [
        "--deepspeed --deepspeed_config /home/ann/ds.json",
        "@/home/ann/arguments",
        "--config /home/ann/x.yaml",
    ],
)
def test_no_file_that_a_script_names_is_opened(closed: list[str], more: str) -> None:
    """What it names may hang, and is the user's; so what is read is a part."""
    read_submission(a_submission(), TRAINING.replace("--bf16", f"--bf16 {more}"), (), "")
    read_submission(
        a_submission(),
        "#!/bin/bash\nsource /home/ann/env.sh\n. /etc/profile\naccelerate launch train.py --config /home/ann/x.yaml\n",
        (),
        "",
    )
    read_submission(a_submission(), "#!/bin/bash\nbash /home/ann/train.sh\naxolotl train /home/ann/x.yml\n", (), "")
    assert closed == []


def test_a_launch_that_names_a_config_is_read_in_part() -> None:
    """Its verdict is not to be enforced."""
    found = read_submission(a_submission(), TRAINING.replace("--bf16", "--bf16 --deepspeed --deepspeed_config /home/ann/ds.json"), (), "")
    assert found.is_partial


def test_a_config_of_a_model_is_a_file_too() -> None:
    """Named as such."""
    found = read_submission(a_submission(), "#!/bin/bash\n#PEAKGATE model.hf_config=/home/ann/model\nsrun python train.py\n", (), "")
    assert (found.job, found.is_partial) == (None, True)
    assert "not read on the controller" in found.problem


def test_what_is_no_job_is_named() -> None:
    """A field that nobody knows."""
    found = read_submission(a_submission(), f"{TRAINING}#PEAKGATE batch.micro_batch=3\n", (), "")
    assert found.job is None
    assert "batch.micro_batch" in found.problem


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"tres_per_node": "gres:gpu:2", "min_nodes": 2, "max_nodes": 4}, ["--nodes=2", "--gres=gpu:2"]),
        ({"tres_per_node": "", "tres_per_job": "gres/gpu=4"}, ["--nodes=1", "--gres=gpu:4"]),
        ({"tres_per_node": "", "tres_per_job": "gres/gpu=4", "min_nodes": 4294967294, "max_nodes": 4294967294}, ["--gpus=4"]),
        ({"num_tasks": 8, "ntasks_per_node": 4}, ["--nodes=1", "--ntasks=8", "--ntasks-per-node=4", "--gres=gpu:2"]),
    ],
)
def test_the_request_as_options(fields: dict[str, object], want: list[str]) -> None:
    """Of a range the least; nothing that was not stated."""
    assert request_flags(a_submission(**fields)) == want


@given(st.text(), st.text())
def test_any_script_and_comment_are_read_or_let_be(script: str, stated: str) -> None:
    """Nothing raises, and what has a problem has no job to be refused for."""
    read = read_submission(a_submission(), f"#!/bin/bash\ntorchrun train.py {script}", (), stated)
    assert read.job is None or not read.problem


def test_a_script_that_is_cut_off_refuses_nobody() -> None:
    """What stands behind the part that the hook sends may be a training, or change the one in front of it."""
    filled = "#" * SCRIPT_HEAD
    cut = read_submission(a_submission(), f"#!/bin/bash\n{filled}", (), "")
    assert (cut.job, cut.problem) == (None, CUT_OFF)
    begun = read_submission(a_submission(), f"{TRAINING}{filled}"[:SCRIPT_HEAD], (), "")
    assert begun.job is not None
    assert begun.is_partial


def test_a_command_that_is_cut_off_refuses_nobody() -> None:
    """The hook sends two hundred words."""
    argv = (*TRAINING.replace("\\\n", "").split("\n")[1].replace("$SLURM_GPUS_ON_NODE", "2").replace("$SLURM_NNODES", "1").split(),)
    assert not read_submission(a_submission(), "", argv, "").is_partial
    assert read_submission(a_submission(), "", (*argv, *["--bf16"] * MOST_WORDS), "").is_partial


def test_a_model_that_stands_in_a_file_is_said_to_stand_there() -> None:
    """And not to be missing."""
    found = read_submission(a_submission(), "#!/bin/bash\naccelerate launch -m axolotl.cli.train ax.yml\n", (), "")
    assert (found.job, found.problem) == (None, NAMES_FILES)
