"""Requests of any kind and replies of any content: the line protocol breaks at neither."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.hooks.slurm.submission import submission_of
from peakgate.hooks.slurm.wire import MOST_REPLY_BYTES, Reply, WireError, parse_request


def a_line(**more: object) -> bytes:
    """A request."""
    return json.dumps({"v": 1, "op": "submit", "uid": 1001, **more}).encode() + b"\n"


def test_a_request_says_what_a_submission_asks_for() -> None:
    """Fields, the job as it was, script, words and environment."""
    line = a_line(
        op="modify",
        cluster="c",
        default_partition="gpu",
        fields={"tres_per_node": "gres:gpu:h100:2"},
        record={"partition": "any", "job_id": 7},
        script="#!/bin/sh\n",
        argv=["a", "b c"],
        env={"PEAKGATE_JOB": "x"},
    )
    request = parse_request(line)
    assert (request.operation, request.uid, request.cluster, request.script) == ("modify", 1001, "c", "#!/bin/sh\n")
    assert (request.argv, request.environment) == (("a", "b c"), {"PEAKGATE_JOB": "x"})
    submission = submission_of(request.flat())
    assert (submission.is_change, submission.types, submission.partitions, submission.job_id) == (True, ("h100",), ("any",), 7)


def test_a_job_without_a_partition_is_in_the_default_one() -> None:
    """As the controller will have it."""
    request = parse_request(a_line(default_partition="gpu", fields={"gres": "gpu:1"}))
    assert submission_of(request.flat()).partitions == ("gpu",)


def test_bytes_that_are_no_text_are_kept() -> None:
    """A script's digest is made of its bytes."""
    request = parse_request(b'{"v":1,"op":"submit","uid":1,"script":"\xff\xfe"}')
    assert request.script.encode("utf-8", "surrogateescape") == b"\xff\xfe"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"[]",
        b'"x"',
        b"{",
        b"[" * 100_000,
        a_line(v=2),
        a_line(op="delete"),
        a_line(uid="0"),
        a_line(uid=True),
        a_line(uid=1.5),
        b'{"v":1,"op":"submit"}',
    ],
)
def test_what_is_no_request_is_refused(line: bytes) -> None:
    """By one error, whatever it is."""
    with pytest.raises(WireError):
        parse_request(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["fields", "record", "script", "argv", "env", "cluster", "default_partition"]), JSON))
def test_members_of_any_kind_are_read_or_left_out(members: dict[str, object]) -> None:
    """Nothing that a member may hold raises."""
    submission = submission_of(parse_request(a_line(**members)).flat())
    assert submission.gpu_count is None or submission.gpu_count.count >= 0


@given(st.text(), st.text(), st.text(max_size=4000), st.lists(st.text(), max_size=20))
def test_a_reply_is_lines_whatever_is_said(field: str, value: str, said: str, more: list[str]) -> None:
    """No text makes a line of its own, ends the reply early or passes its size."""
    encoded = Reply(word="abc", says=(said, *more), sets={field: value}).encoded()
    lines = encoded.decode().split("\n")
    assert (lines[0], lines[-2:]) == ("ALLOW abc", ["END", ""])
    assert all(line.startswith(("SAY ", "SET ")) for line in lines[1:-2])
    assert len(encoded) <= MOST_REPLY_BYTES


def test_a_refusal_is_a_word_and_its_reason() -> None:
    """As Lua reads it."""
    assert Reply(admits=False, word="gres", says=("too large",)).encoded() == b"DENY gres\nSAY too large\nEND\n"
