"""What a real controller shows its script for each command and each flag is read as what was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.integration.slurm.cluster import HERE, Slurm, job_number

from peakgate.hooks.slurm.submission import Submission, submission_of

ONE_NODE, OPEN = "1", "at least 1"


class Seen:
    """The descriptions of a cluster."""

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        self.path = slurm.folder / "descriptions"

    def new(self) -> list[Submission]:
        """Those since the last look, in their order."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.path.unlink(missing_ok=True)
        return [submission_of(json.loads(line)) for line in lines]


@pytest.fixture
def seen(slurm: Slurm) -> Iterator[Seen]:
    """The controller writes down what it sees."""
    slurm.job_submit((HERE / "show_job_desc.lua").read_text().replace("@FOLDER@", str(slurm.folder)))
    yield Seen(slurm)
    (slurm.folder / "descriptions").unlink(missing_ok=True)


def told(submission: Submission) -> tuple[list[tuple[str, str | None, str]], str]:
    """GPUs (type, on a node, in all) and nodes."""
    return [(a.type, str(a.per_node) if a.per_node else None, str(a.total)) for a in submission.gpus], str(submission.nodes)


FLAGS = [
    (["--gres=gpu"], ("", "1", "1"), ONE_NODE),
    (["--gres=gpu:h100:2"], ("h100", "2", "2"), ONE_NODE),
    (["--gpus-per-node=h100:8", "-N2"], ("h100", "8", "16"), "2"),
    (["--gpus=4"], ("", None, "4"), OPEN),
    (["--gpus=h100:4", "-N1"], ("h100", "4", "4"), ONE_NODE),
    (["-n4", "--gpus-per-task=h100:2"], ("h100", None, "8"), OPEN),
    (["-N2", "--ntasks-per-node=4", "--gpus-per-task=1"], ("", None, "8"), "2"),
    (["-N1", "--gpus-per-socket=1", "--sockets-per-node=2"], ("", "2", "2"), ONE_NODE),
    (["--gres=gpu:2", "--ntasks-per-gpu=2"], ("", "2", "at least 2"), OPEN),
    (["-n8", "--ntasks-per-gpu=2"], ("", None, "4"), OPEN),
    (["-N1-2", "--gres=gpu:8"], ("", "8", "at least 8"), OPEN),
    (["-N1-2", "--gpus=8", "--gpus-per-node=4"], ("", "4", "8"), "2"),
    (["-p", "a100", "--gres=gpu:a100-80:3", "--exclusive"], ("a100-80", "3", "3"), ONE_NODE),
    (["-p", "rest", "--gres=gpu:1g.10gb:2"], ("1g.10gb", "2", "2"), ONE_NODE),
    (["--gres=gpu:1", "--export=NONE"], ("", "1", "1"), ONE_NODE),
    (["-w", "h100n2", "--gres=gpu:1"], ("", "1", "1"), ONE_NODE),
]


@pytest.mark.parametrize("flags", FLAGS, ids=lambda row: " ".join(row[0]))
def test_sbatch(seen: Seen, flags: tuple[list[str], tuple[str, str | None, str], str]) -> None:
    """Each flag of a batch job, typed and untyped."""
    asked, want, want_nodes = flags
    done = seen.slurm.sbatch("true", *asked)
    assert done.returncode == 0, done.stderr
    (submission,) = seen.new()
    assert told(submission) == ([want], want_nodes)
    assert (submission.user_id, submission.unread, submission.is_change) == (65534, (), False)
    assert submission.script == "#!/bin/bash\ntrue"


@pytest.mark.parametrize("command", ["srun", "salloc"])
@pytest.mark.parametrize(
    "asked", [["--gres=gpu:h100:1"], ["--gpus=2"], ["-n2", "--gpus-per-task=1"], ["-N2", "--gpus-per-node=2"]], ids=" ".join
)
def test_interactive(seen: Seen, command: str, asked: list[str]) -> None:
    """A command without a script says the same, and nothing of its environment."""
    done = seen.slurm.run(command, "--comment=peakgate: id=1", *asked, "true", env={"PEAKGATE_X": "1"})
    assert done.returncode == 0, done.stderr
    (submission,) = seen.new()
    want = {"--gres=gpu:h100:1": ("h100", "1", "1"), "--gpus=2": ("", None, "2"), "-n2": ("", None, "2"), "-N2": ("", "2", "4")}[asked[0]]
    assert told(submission)[0] == [want]
    assert (submission.comment, submission.script, submission.environment) == ("peakgate: id=1", "", {})


def test_an_array_is_one_submission(seen: Seen) -> None:
    """With all its tasks."""
    seen.slurm.sbatch("true", "--array=0-3%2", "--gres=gpu:1")
    (submission,) = seen.new()
    assert submission.array == "0-3%2"


def test_a_heterogeneous_job_is_one_submission_a_component(seen: Seen) -> None:
    """Only the first has the script."""
    seen.slurm.run("sbatch", "--gres=gpu:1", ":", "--gpus=2", seen.slurm.script("true"))
    first, second = seen.new()
    assert [(one.component, bool(one.script)) for one in (first, second)] == [(0, True), (1, False)]
    assert [told(one)[0] for one in (first, second)] == [[("", "1", "1")], [("", None, "2")]]


def test_where(seen: Seen) -> None:
    """Partitions, features, nodes, account and QOS as they were asked for."""
    asked = ["--partition=a100,h100", "--constraint=gpu80g|gpumix", "--account=lab", "--qos=long", "--exclude=h100n1", "--comment=why"]
    done = seen.slurm.sbatch("true", "--gres=gpu:1", *asked)
    assert done.returncode == 0, done.stderr
    (one,) = seen.new()
    assert (one.partitions, one.features, one.account, one.qos) == (("a100", "h100"), "gpu80g|gpumix", "lab", "long")
    assert (one.excluded, one.comment) == ("h100n1", "why")


def test_shares_of_a_card(seen: Seen) -> None:
    """Shards and MPS are no whole cards."""
    for flags in (["-p", "a100", "--gres=shard:2"], ["-p", "rest", "--gres=mps:50"]):
        done = seen.slurm.sbatch("true", *flags)
        assert done.returncode == 0, done.stderr
        (submission,) = seen.new()
        assert (submission.gpus, submission.is_fraction, submission.asks_for_gpus) == ((), True, True)


@pytest.mark.parametrize("flags", [[], ["--gres=none"], ["--gres=gpu:0"], ["-n4", "-c2"]], ids=" ".join)
def test_a_job_without_gpus(seen: Seen, flags: list[str]) -> None:
    """There is nothing to judge."""
    assert seen.slurm.sbatch("true", *flags).returncode == 0
    (submission,) = seen.new()
    assert not submission.asks_for_gpus


def test_a_question_looks_like_a_submission(seen: Seen) -> None:
    """--test-only asks the script as well."""
    seen.slurm.sbatch("true", "--test-only", "--gres=gpu:1")
    (submission,) = seen.new()
    assert told(submission)[0] == [("", "1", "1")]


@pytest.mark.parametrize(
    ("change", "want", "want_partitions"),
    [
        ("gres=gpu:h100:2", [("h100", "2", "2")], ("h100",)),
        ("partition=any", [("h100", "1", "1")], ("any",)),
        ("numnodes=2", [("h100", "1", "2")], ("h100",)),
        ("comment=peakgate: x", [("h100", "1", "1")], ("h100",)),
        ("gres=", [], ("h100",)),
    ],
)
def test_a_change_of_a_job(seen: Seen, change: str, want: list[tuple[str, str, str]], want_partitions: tuple[str, ...]) -> None:
    """The job as the change would leave it, with what it does not touch."""
    number = job_number(seen.slurm.sbatch("true", "--hold", "--gres=gpu:h100:1"))
    seen.new()
    done = seen.slurm.run("scontrol", "update", f"jobid={number}", change)
    assert done.returncode == 0, done.stderr
    (submission,) = seen.new()
    assert (submission.job_id, submission.is_change, submission.user_id) == (number, True, 65534)
    assert submission.partitions == want_partitions
    loose = [(kind, each, total.removeprefix("at least ")) for kind, each, total in told(submission)[0]]
    assert loose == [(kind, each, total.removeprefix("at least ")) for kind, each, total in want]
