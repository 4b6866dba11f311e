"""Resources in Slurm's text, in the spelling of every release."""

from __future__ import annotations

import pytest

from peakgate.hooks.slurm.tres import LONGEST, Item, count_of, items


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("gpu", Item("gpu", "", 1)),
        ("gpu:8", Item("gpu", "", 8)),
        ("gpu=8", Item("gpu", "", 8)),
        ("gpu:h100", Item("gpu", "h100", 1)),
        ("gpu:h100:8", Item("gpu", "h100", 8)),
        ("gpu:h100=8", Item("gpu", "h100", 8)),
        ("gres:gpu:h100:2", Item("gpu", "h100", 2)),
        ("gres/gpu:h100:2", Item("gpu", "h100", 2)),
        ("gres/gpu=2", Item("gpu", "", 2)),
        ("GRES/GPU:2", Item("gpu", "", 2)),
        ("gpu:a100:4(S:0-1)", Item("gpu", "a100", 4)),
        ("gpu:a100:4(S:0,2)", Item("gpu", "a100", 4)),
        ("gpu:8(IDX:0-3,5)", Item("gpu", "", 8)),
        ("gpu:tesla:no_consume:4", Item("gpu", "tesla", 4)),
        ("mps:2K", Item("mps", "", 2048)),
        ("gpu:1g.10gb:7", Item("gpu", "1g.10gb", 7)),
        ("gpu:a100_3g.20gb", Item("gpu", "a100_3g.20gb", 1)),
        ("gpu:nvidia_h100_80gb_hbm3:8", Item("gpu", "nvidia_h100_80gb_hbm3", 8)),
    ],
)
def test_one_item(text: str, want: Item) -> None:
    """Name, type and count, with and without each."""
    assert items(text, is_gres=True) == ((want,), ())


@pytest.mark.parametrize("text", ["", "(null)", "N/A", "none", "gres:", "gres/", ",,", "gpu:0", "gres/gpu:h100=0", "cpu=4", "license/x:1"])
def test_nothing(text: str) -> None:
    """Words for nothing, counts of nothing, and what is no generic resource."""
    assert items(text, is_gres=text not in {"cpu=4", "license/x:1"}) == ((), ())


def test_a_list_of_a_request() -> None:
    """Only what says that it is a generic resource is one; of two of a kind the later one counts."""
    found, unread = items("cpu:10,gres/gpu:gtx:1,license/iop1:1,gres/gpu:gtx:2,gres/nic=1")
    assert (found, unread) == ((Item("gpu", "gtx", 2), Item("nic", "", 1)), ())


def test_a_list_of_a_node() -> None:
    """Types stand beside each other."""
    found, _ = items("gpu:a100-40:4(S:0),gpu:a100-80:4(S:1),shard:a100-40:16", is_gres=True)
    assert [(item.name, item.type, item.count) for item in found] == [
        ("gpu", "a100-40", 4),
        ("gpu", "a100-80", 4),
        ("shard", "a100-40", 16),
    ]


@pytest.mark.parametrize("text", ["gpu:", "gpu::1", "gpu:a:b:c", "gpu:h100=x", "gpu:h100:x", ":", "g pu", "gpu:1;rm"])
def test_what_cannot_be_read(text: str) -> None:
    """It is given back rather than guessed at."""
    assert items(text, is_gres=True) == ((), (text,))


def test_only_so_much_is_read() -> None:
    """No text is too long."""
    found, _ = items("gpu:1," * LONGEST, is_gres=True)
    assert found == (Item("gpu", "", 1),)


@pytest.mark.parametrize(
    ("text", "want"),
    [("7", 7), ("2k", 2048), ("2KB", 2000), ("1KiB", 1024), ("1m", 1 << 20), ("x", None), ("1g.5gb", None), ("9" * 19, None)],
)
def test_a_count(text: str, want: int | None) -> None:
    """With the multiples that the controller knows."""
    assert count_of(text) == want
