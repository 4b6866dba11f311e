"""What is known of a cluster's cards, from whom, and what does not fit together."""

from __future__ import annotations

from pathlib import Path

from peakgate.hooks.slurm.card_file import table_text, write_table
from peakgate.hooks.slurm.card_table import CardTable, Row, Untyped, read_table
from peakgate.hooks.slurm.inventory import Found, inventory
from peakgate.hooks.slurm.learned import Seen, is_near, learned_of
from peakgate.hooks.slurm.nodes import Node
from peakgate.hooks.slurm.tres import Item

GIB = 1 << 30
H100, A100_40, A100_80, ODD = 85_520_809_984, 42_949_672_960, 85_899_345_920, 17 * GIB


def a_node(name: str, *gpus: tuple[str, int], features: tuple[str, ...] = (), host: str = "") -> Node:
    """In partition p."""
    cards = tuple(Item("gpu", kind, count) for kind, count in gpus)
    return Node(name=name, host=host, partitions=("p",), features=features, gpus=cards)


def told(found: list[Found]) -> list[tuple[str, str, str, int, str, str, bool]]:
    """All but the place."""
    return [(f.row.type, f.row.nodes, f.row.gpu, f.row.memory_bytes, f.row.source, f.remark, f.is_bad) for f in found]


def test_like_nodes_stand_together() -> None:
    """By type, count, features and partitions; nodes without GPUs are left out."""
    nodes = [*(a_node(f"n{i}", ("h100", 8), features=("f",)) for i in range(1, 4)), a_node("n9", ("h100", 4)), a_node("c1")]
    found = inventory(nodes)
    assert [(each.row.nodes, each.row.count, each.row.features, each.row.partitions) for each in found] == [
        ("n9", 4, (), ("p",)),
        ("n[1-3]", 8, ("f",), ("p",)),
    ]
    assert {(each.row.gpu, each.row.source, each.remark) for each in found} == {("h100-80gb", "catalogue", "")}


def test_what_agents_saw_wins_over_a_name() -> None:
    """With the catalogue's name of the card that they saw, whatever the machine's domain is called."""
    seen = [Seen("n1.hpc.example", "NVIDIA A100-SXM4-80GB", A100_80), Seen("REAL2", "NVIDIA H100 80GB HBM3", H100)]
    found = inventory([a_node("n1", ("a100", 4)), a_node("n2", ("gold", 4), host="real2")], seen=seen)
    assert told(found) == [
        ("a100", "n1", "a100-80gb", A100_80, "agents", "", False),
        ("gold", "n2", "h100-80gb", H100, "agents", "", False),
    ]


def test_a_node_with_two_types() -> None:
    """Each card is of the type whose name has its size; one that may be of both is of none."""
    node = a_node("n1", ("a100-40", 4), ("a100-80", 4))
    seen = {"n1": [Seen("n1", "NVIDIA A100-SXM4-40GB", A100_40), Seen("n1", "NVIDIA A100-SXM4-80GB", A100_80)]}
    assert learned_of(node, seen) == {"a100-40": seen["n1"][0], "a100-80": seen["n1"][1]}
    same = a_node("n1", ("a100", 4), ("a100-80", 4))
    assert learned_of(same, {"n1": seen["n1"][1:]}) == {}
    assert learned_of(a_node("n1"), seen) == {}
    assert learned_of(node, {}) == {}


def test_several_cards_of_one_type_are_said() -> None:
    """A type that hides two cards is not judged by either."""
    seen = [Seen("n1", "NVIDIA A100-SXM4-40GB", A100_40), Seen("n1", "", A100_80)]
    (found,) = inventory([a_node("n1", ("big", 8))], seen=seen)
    assert (found.row.memory_bytes, found.is_bad) == (0, True)
    assert found.remark == "agents report several cards of this type: NVIDIA A100-SXM4-40GB of 40.0 GiB, a card of 80.0 GiB"
    (by_name,) = inventory([a_node("n1", ("h100", 8))], seen=seen)
    assert (by_name.row.gpu, by_name.is_bad) == ("h100-80gb", True)


def test_a_type_is_the_same_in_other_nodes() -> None:
    """What agents saw of it in one node holds where none has seen any, and is said; not when it differs among nodes."""
    nodes = [a_node("n1", ("odd", 2)), a_node("n2", ("odd", 2))]
    first, second = inventory(nodes, seen=[Seen("n1", "", ODD)])
    assert (first.remark, second.remark) == ("", "as agents report of this type in n1")
    assert (second.row.memory_bytes, second.is_bad) == (ODD, False)
    third = inventory([*nodes, a_node("n3", ("odd", 2))], seen=[Seen("n1", "", ODD), Seen("n2", "", 2 * ODD)])[-1]
    assert (third.row.nodes, third.row.source, third.is_bad) == ("n3", "unknown", True)


def test_what_nobody_knows() -> None:
    """Says what to do."""
    nodes = [a_node("n1", ("", 4), features=("v100",)), a_node("n2", ("1g.10gb", 7)), a_node("n3", ("1g.10gb", 7), features=("h100",))]
    assert told(inventory(nodes)) == [
        ("", "n1", "", 0, "unknown", "a card without a type may be v100-16gb or v100-32gb: state gpu or memory_bytes", True),
        ("1g.10gb", "n2", "", 0, "unknown", "1g.10gb is no card that is known by its name: state gpu or memory_bytes", True),
        ("1g.10gb", "n3", "h100-80gb/1g.10gb", 0, "catalogue", "", False),
    ]


def test_a_persons_word_wins_and_is_checked() -> None:
    """Its row holds for its type and place; where agents see something else, that is said."""
    own = CardTable(cards=(Row(type="a100", nodes="n[1-2]", gpu="a100-80gb"), Row(type="a100", partitions=("q",), gpu="a100-80gb")))
    nodes = [a_node(f"n{i}", ("a100", 4)) for i in (1, 2, 3)]
    found = inventory(nodes, own=own, seen=[Seen("n2", "NVIDIA A100-PCIE-40GB", A100_40)], catalogue={"a100-80gb": A100_80})
    assert told(found) == [
        ("a100", "n1", "a100-80gb", 0, "table", "", False),
        ("a100", "n2", "a100-80gb", 0, "table", "agents report 40.0 GiB (NVIDIA A100-PCIE-40GB) in n2, the table says 80.0 GiB", True),
        ("a100", "n3", "a100-40gb", A100_40, "agents", "as agents report of this type in n2", False),
    ]


def test_what_agents_told_before_is_kept() -> None:
    """A service that is away, or that has forgotten, takes nothing out of the table; what agents tell now is newer."""
    own = CardTable(
        cards=(
            Row(type="odd", nodes="n1", memory_bytes=ODD, source="agents"),
            Row(type="h100", nodes="n2", memory_bytes=7, source="agents"),
        )
    )
    nodes = [a_node("n1", ("odd", 2)), a_node("n2", ("h100", 2)), a_node("n3", ("odd", 2))]
    found = inventory(nodes, own=own)
    assert [(each.row.nodes, each.row.memory_bytes, each.row.source) for each in found] == [
        ("n2", 7, "agents"),
        ("n1", ODD, "agents"),
        ("n3", 0, "unknown"),
    ]
    newer = inventory(nodes[:1], own=own, seen=[Seen("n1", "", 2 * ODD)])
    assert newer[0].row.memory_bytes == 2 * ODD


def test_a_name_that_is_wrong_is_said() -> None:
    """A type called after a card that it is not."""
    (found,) = inventory([a_node("n1", ("h100", 4))], seen=[Seen("n1", "NVIDIA A100-PCIE-40GB", A100_40)])
    assert (found.row.gpu, found.row.memory_bytes, found.is_bad) == ("a100-40gb", A100_40, False)
    assert found.remark == "agents report 40.0 GiB (NVIDIA A100-PCIE-40GB) in n1, h100 is read as h100-80gb, 74.5 GiB"


def test_sizes_of_one_card() -> None:
    """79.6 GiB is an 80 GB card, and 40 is not 48."""
    assert is_near(H100, 80 * 10**9)
    assert is_near(24_152_899_584, 24 * 10**9)
    assert not is_near(40 * 10**9, 48 * 10**9)


def test_a_table_that_is_written_is_read_the_same(tmp_path: Path) -> None:
    """A person's rows and settings stay, found ones are renewed, and a second run changes nothing."""
    path = tmp_path / "cards.yaml"
    path.write_text(
        "untyped: pin\ncards:\n- {type: odd, memory_bytes: 18253611008}\n- {type: gone, nodes: n7, gpu: t4-16gb, source: agents}\n"
    )
    path.chmod(0o640)
    nodes = [a_node("n1", ("odd", 2)), a_node("n2", ("h100", 8)), a_node("n3", ("what", 1))]
    for _ in range(2):
        own = read_table(path)
        write_table(path, table_text(inventory(nodes, own=own), own=own, cluster="hpc", default_partition="p"))
    table = read_table(path)
    assert (table.cluster, table.default_partition, table.untyped) == ("hpc", "p", Untyped.pin)
    assert [(row.type, row.nodes, row.source) for row in table.cards] == [
        ("odd", "", "admin"),
        ("h100", "n2", "catalogue"),
        ("odd", "n1", "table"),
        ("what", "n3", "unknown"),
    ]
    assert path.stat().st_mode & 0o777 == 0o640
    assert "# what is no card that is known by its name" in path.read_text()
    stated = path.read_text().replace("source: catalogue", "source: admin")
    path.write_text(stated)
    own = read_table(path)
    assert table_text(inventory(nodes, own=own), own=own, cluster="", default_partition="p").count("type: h100") == 1
