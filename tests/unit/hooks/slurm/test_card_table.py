"""The administrator's table of cards, as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from peakgate.hooks.slurm.card_table import CardTable, Row, TableError, Untyped, read_table, table_of


def test_a_table(tmp_path: Path) -> None:
    """What a person writes, with everything that may be left out left out."""
    path = tmp_path / "cards.yaml"
    path.write_text("""\
cluster: hpc
untyped: pin
cards:
  - {type: h100, nodes: "h[1-2]", partitions: [any, h100], features: hopper, count: 8, gpu: h100-80gb}
  - type: 2080
    memory_bytes: 11811160064
""")
    want = (
        Row(type="h100", nodes="h[1-2]", partitions=("any", "h100"), features=("hopper",), count=8, gpu="h100-80gb"),
        Row(type="2080", memory_bytes=11811160064),
    )
    assert read_table(path) == CardTable(cluster="hpc", untyped=Untyped.pin, cards=want)
    path.write_text("# nothing yet\n")
    assert read_table(path) == CardTable()


@pytest.mark.parametrize(
    ("told", "want"),
    [
        ([], "cards, cluster, default_partition, untyped and nothing else"),
        ({"card": []}, "nothing else"),
        ({"cards": "h100"}, "cards is a list of rows"),
        ({"cards": ["h100"]}, "cards[0] is no mapping"),
        ({"cards": [{}, {"tpe": "h100"}]}, "cards[1].tpe is no field; a row has type"),
        ({"cards": [{"count": "8"}]}, "cards[0].count is '8'; it is a whole number"),
        ({"cards": [{"memory_bytes": -1}]}, "cards[0].memory_bytes is '-1'"),
        ({"cards": [{"memory_bytes": True}]}, "cards[0].memory_bytes is 'True'"),
        ({"cards": [{"partitions": {"a": 1}}]}, "cards[0].partitions is a list of names"),
        ({"cards": [{"features": [["a"]]}]}, "cards[0].features is a list of names"),
        ({"untyped": "largest"}, "untyped is 'largest'; allowed are worst, best, pin"),
    ],
)
def test_what_is_no_table(told: object, want: str) -> None:
    """The row and the field are named."""
    with pytest.raises(TableError) as caught:
        table_of(told)
    assert want in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Its path is named."""
    path = tmp_path / "cards.yaml"
    for content, want in (
        (None, "cannot be read: No such file"),
        (b"\xff\xfe", "cannot be read"),
        (b"a: [", "is not YAML"),
        (b"a: 1", "nothing else"),
        (b"cards: []\n" + b"#" * (1 << 24), "is longer than 16777216 characters"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(TableError) as caught:
            read_table(path)
        assert str(caught.value).startswith(str(path))
        assert want in str(caught.value)
