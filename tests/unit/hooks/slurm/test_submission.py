"""A job description says how many GPUs of which type on how many nodes, and where; of every release, and whatever it holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.hooks.slurm.amounts import Amount
from peakgate.hooks.slurm.submission import Submission, submission_of
from peakgate.hooks.slurm.tres import Item

GOLDEN = Path(__file__).parents[3] / "golden" / "slurm_job_descriptions.jsonl"
ROWS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def seen(submission: Submission) -> dict[str, object]:
    """As the rows have it."""
    gpus = [[asked.type, asked.per_node and str(asked.per_node), str(asked.total)] for asked in submission.gpus]
    shares = [[item.name, item.type, item.count] for item in submission.shares]
    return {"gpus": gpus, "nodes": str(submission.nodes), "shares": shares}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['release']}: {row['asked']}")
def test_a_recorded_description(row: dict[str, dict[str, object]]) -> None:
    """Each release's spelling of each option comes to the same request."""
    submission = submission_of(row["fields"])
    want = {"shares": []} | row["want"]
    found = {name: getattr(submission, name) for name in want} | seen(submission)
    assert {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()} == want
    assert submission.unread == ()
    assert submission.is_fraction == bool(want["shares"])


def test_all_gpus_together() -> None:
    """Counts of several types add up; one that the scheduler decides leaves the sum open."""
    both = submission_of({"tres_per_node": "gres/gpu:a:1,gres/gpu:b:2", "min_nodes": 2, "max_nodes": 2})
    assert (both.gpus_per_node, both.gpu_count, both.types) == (Amount(3), Amount(6), ("a", "b"))
    spread = submission_of({"tres_per_job": "gres/gpu:a:1,gres/gpu:b:2"})
    assert (spread.gpus_per_node, spread.gpu_count) == (None, Amount(3))
    none = submission_of({})
    assert (none.gpus_per_node, none.gpu_count, none.asks_for_gpus) == (None, None, False)


def test_a_type_named_once_is_meant_everywhere() -> None:
    """GPUs in all without a type and GPUs a node with one are the same GPUs."""
    (asked,) = submission_of({"tres_per_job": "gres:gpu:8", "tres_per_node": "gres:gpu:h100:4"}).gpus
    assert (asked.type, asked.per_node, asked.total) == ("h100", Amount(4), Amount(8))


@pytest.mark.parametrize(
    ("fields", "want_total", "want_per_node"),
    [
        ({"tres_per_task": "gres/gpu:1", "min_nodes": 2, "max_nodes": 2}, "2", "1"),
        ({"tres_per_task": "gres/gpu:1", "min_nodes": 2, "max_nodes": 2, "cpus_per_task": 8}, "at least 2", "at least 1"),
        ({"tres_per_task": "gres/gpu:2", "min_nodes": 2, "max_nodes": 2, "ntasks_per_node": 4}, "16", "8"),
        ({"tres_per_task": "gres/gpu:2", "num_tasks": 4, "min_nodes": 1, "max_nodes": 1}, "8", "8"),
        ({"tres_per_socket": "gres/gpu:2", "min_nodes": 2, "max_nodes": 2, "sockets_per_node": 2}, "8", "4"),
        ({"tres_per_socket": "gres/gpu:1", "num_tasks": 5, "ntasks_per_socket": 2}, "3", None),
        ({"tres_per_socket": "gres/gpu:2", "min_nodes": 2, "max_nodes": 2}, "at least 4", None),
        ({"ntasks_per_tres": 2, "num_tasks": 8, "min_nodes": 1, "max_nodes": 1}, "4", "4"),
        ({"tres_per_node": "gres/gpu:2", "tres_per_job": "gres/gpu:5"}, "5", "2"),
        ({"tres_per_node": "gres/gpu:2", "num_tasks": 40}, "at least 2", "2"),
        ({"tres_per_node": "gres/gpu:2", "min_nodes": 3.0, "max_nodes": 3.0}, "6", "2"),
    ],
)
def test_counts(fields: dict[str, object], want_total: str, want_per_node: str | None) -> None:
    """What is asked for a node, a socket or a task is multiplied by as many as are sure."""
    (asked,) = submission_of(fields).gpus
    assert (str(asked.total), asked.per_node and str(asked.per_node)) == (want_total, want_per_node)


def test_numbers_that_nobody_stated() -> None:
    """NO_VAL of each width is none; a user may have the number that is NO_VAL in a short field."""
    submission = submission_of({"tres_per_node": "gres:gpu:1", "min_nodes": 4294967294, "ntasks_per_node": 65534, "user_id": 65534})
    assert (submission.nodes, submission.tasks_per_node, submission.user_id) == (Amount(1), None, 65534)
    lua = submission_of({"tres_per_node": "gres:gpu:1", "min_nodes": 1.8446744073709552e19, "num_tasks": float("nan")})
    assert (lua.nodes, lua.tasks) == (Amount(1), None)


def test_everything_else() -> None:
    """Who, where and what for, as it was stated; of the environment only our own settings."""
    submission = submission_of({
        "partition": "a, b", "account": "lab", "default_qos": "normal", "user_id": 7, "user_name": "ada", "name": "n", "comment": "c",
        "admin_comment": "peakgate=x", "argv": {"2": "b", "1": "a"}, "script": "#!/bin/sh", "req_nodes": "n[1-2]", "exc_nodes": "n3",
        "environment": {"PEAKGATE_JOB": "j", "AWS_SECRET": "s", "PEAKGATE_X": 3}, "het_job_offset": 0, "array_inx": "0-9",
    })  # fmt: skip
    assert submission == Submission(
        partitions=("a", "b"), account="lab", qos="normal", user_id=7, user_name="ada", name="n", comment="c", admin_comment="peakgate=x",
        arguments=("a", "b"), script="#!/bin/sh", node_list="n[1-2]", excluded="n3", environment={"PEAKGATE_JOB": "j"}, component=0,
        array="0-9",
    )  # fmt: skip


def test_shares_beside_whole_cards() -> None:
    """A job with a share of a card gets no whole one for it."""
    submission = submission_of({"tres_per_node": "gres/shard:a100=2"})
    assert (submission.gpus, submission.shares, submission.is_fraction) == ((), (Item("shard", "a100", 2),), True)


@pytest.mark.parametrize("text", ["gres/gpu:a:b:c", "gpu:", "gres:gpu::1", "gres/gpu:h100=x", "gpu(x", "gres/ gpu:1"])
def test_what_cannot_be_read_is_not_nothing(text: str) -> None:
    """A request that may be for GPUs is kept as it stands, so that nobody takes the job for one without."""
    submission = submission_of({"tres_per_node": text})
    assert (submission.gpus, submission.unread, submission.asks_for_gpus) == ((), (text,), True)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["tres_per_node", "tres_per_job", "tres_per_task", "gres", "min_nodes", "max_nodes", "num_tasks", "argv", "environment", "partition",
     "job_rec.gres", "job_rec.tres_per_node", "user_id", "ntasks_per_gpu", "script", "sockets_per_node"]
)  # fmt: skip


@given(st.dictionaries(NAMES | st.text(max_size=5), ANYTHING))
def test_nothing_makes_it_fail(fields: dict[str, object]) -> None:
    """Whatever the fields hold, the answer is a submission with sane counts."""
    submission = submission_of(fields)
    assert all(asked.total.count >= 1 for asked in submission.gpus)
    assert submission.nodes.count >= 1


RESOURCE = st.text(alphabet="gpures:/=,()S0123kKh-. ", max_size=60)


@given(RESOURCE, RESOURCE)
def test_no_request_makes_it_fail(per_node: str, per_task: str) -> None:
    """The same for texts that look like requests."""
    submission = submission_of({"tres_per_node": per_node, "tres_per_task": per_task, "num_tasks": 3})
    assert all(asked.total.count >= 1 for asked in submission.gpus)
