"""Nodes and lists of nodes, as scontrol prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.hooks.slurm.nodes import MOST_NODES, Node, default_partition, expanded, folded, nodes_of
from peakgate.hooks.slurm.tres import Item

NODES = """\
NodeName=a100n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUTot=16 AvailableFeatures=ampere,gpumix ActiveFeatures=ampere \
Gres=gpu:a100-40:4(S:0),gpu:a100-80:4(S:1),shard:a100-40:16 NodeAddr=127.0.0.1 Version=22.05.8 OS=Linux 6.1 #1 SMP PREEMPT_DYNAMIC \
State=IDLE+PLANNED ThreadsPerCore=1 Partitions=a100,any  BootTime=None
NodeName=c1 CoresPerSocket=1 AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) State=IDLE~ Partitions=cloud
NodeName=c2 AvailableFeatures=(null) Gres=gpu:4 State=IDLE+CLOUD+POWERED_DOWN
No nodes in the system
"""


def test_nodes() -> None:
    """Types, features, partitions, and whether the node is there for good."""
    mixed, bare, cloud = nodes_of(NODES)
    assert mixed == Node(
        name="a100n1",
        partitions=("a100", "any"),
        features=("ampere", "gpumix"),
        gpus=(Item("gpu", "a100-40", 4), Item("gpu", "a100-80", 4)),
        shares=(Item("shard", "a100-40", 16),),
        version="22.05.8",
        state="IDLE+PLANNED",
    )
    assert (bare.gpus, bare.features, bare.comes_and_goes) == ((), (), False)
    assert (cloud.gpus, cloud.partitions, cloud.comes_and_goes) == ((Item("gpu", "", 4),), (), True)


def test_the_default_partition() -> None:
    """The one that says so."""
    assert default_partition("PartitionName=a Default=NO\nPartitionName=b AllowGroups=ALL Default=YES QoS=N/A\n") == "b"
    assert default_partition("") == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", ()),
        ("n1", ("n1",)),
        ("n1,n2", ("n1", "n2")),
        ("n[1-3,5],login", ("n1", "n2", "n3", "n5", "login")),
        ("n[08-10]", ("n08", "n09", "n10")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n[1-2]-ib", ("n1-ib", "n2-ib")),
        ("n[5-1]", ()),
        ("n[x]", ("n[x]",)),
        ("n[", ("n[",)),
    ],
)
def test_a_list_is_taken_apart(text: str, want: tuple[str, ...]) -> None:
    """Ranges, with their zeros in front."""
    assert expanded(text) == want


def test_no_list_is_too_long() -> None:
    """A range without end ends."""
    assert len(expanded("n[1-999999999]")) == MOST_NODES + 1


@pytest.mark.parametrize(
    ("names", "want"),
    [
        (["n2", "n1", "n3", "n5", "login"], "login,n[1-3,5]"),
        (["n08", "n09", "n10"], "n10,n[08-09]"),
        (["n1"], "n1"),
        ([], ""),
    ],
)
def test_a_list_is_put_together(names: list[str], want: str) -> None:
    """Short, and the same again when it is taken apart."""
    assert folded(names) == want


@given(st.lists(st.from_regex(r"\A[a-c]{0,2}[0-9]{0,4}[x-z]?\Z").filter(bool), max_size=20))
def test_taken_apart_it_is_the_same(names: list[str]) -> None:
    """Whatever names there are."""
    assert sorted(expanded(folded(names))) == sorted(set(names))
