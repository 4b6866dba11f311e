"""Levels of groups and their parents."""

from __future__ import annotations

import pytest

from peakgate.calibration.level import Score, level_of, level_without, median, nodes_of, path


def a_score(value: float, *, group: str = "huggingface/fsdp/bf16", exact: bool = True) -> Score:
    """A score of one group."""
    return Score(group=group, value=value, exact=exact)


@pytest.mark.parametrize(
    ("group", "want_path"),
    [
        ("huggingface/fsdp/bf16", ("", "huggingface", "huggingface/fsdp/bf16")),
        ("huggingface", ("", "huggingface")),
        ("", ("",)),
        ("textbook/none/fp32", ("textbook", "textbook/none/fp32")),
        ("textbook", ("textbook",)),
    ],
)
def test_a_group_has_its_framework_and_everything_above_it(group: str, want_path: tuple[str, ...]) -> None:
    """The textbook's accounting has no runtime part and stands apart."""
    assert path(group) == want_path


def test_a_level_is_shrunk_towards_its_parents() -> None:
    """One score of 9 moves everything to 3, the framework to (9 + 2·3)/3 = 5, the group to (9 + 2·5)/3."""
    nodes = nodes_of([a_score(9.0)])
    assert [nodes[name].level for name in path("huggingface/fsdp/bf16")] == pytest.approx([3.0, 5.0, 19 / 3])


def test_many_scores_outweigh_the_parents() -> None:
    """The level of a large group is its median."""
    assert level_of(nodes_of([a_score(2.0)] * 400), "huggingface/fsdp/bf16") == pytest.approx(2.0, abs=0.01)


def test_an_unknown_group_takes_its_parents_level() -> None:
    """The framework first, then everything, then nothing."""
    nodes = nodes_of([a_score(4.0)])
    assert level_of(nodes, "huggingface/ddp/fp32") == nodes["huggingface"].level
    assert level_of(nodes, "megatron/zero1/bf16") == nodes[""].level
    assert level_of(nodes, "textbook/none/fp32") == 0.0
    assert level_of({}, "huggingface/ddp/fp32") == 0.0


def test_up_to_half_of_the_rows_may_be_wrong() -> None:
    """The median does not follow a few wild scores."""
    honest, wild = [a_score(1.0)] * 10, [a_score(25.0)] * 4
    assert level_of(nodes_of(honest + wild), "huggingface/fsdp/bf16") == pytest.approx(1.0, abs=0.1)


def test_a_lower_bound_never_pulls_a_level_down() -> None:
    """One that lies below says nothing; one above pulls up."""
    scores = [a_score(1.0), a_score(2.0), a_score(3.0)]
    want_level = level_of(nodes_of(scores), "huggingface/fsdp/bf16")
    assert level_of(nodes_of([*scores, a_score(-5.0, exact=False)]), "huggingface/fsdp/bf16") == want_level
    assert level_of(nodes_of([*scores, a_score(6.0, exact=False)]), "huggingface/fsdp/bf16") > want_level


def test_a_score_is_left_out_of_its_own_level() -> None:
    """The level without a score is the level of the others."""
    scores = [a_score(1.0), a_score(2.0), a_score(7.0), a_score(4.0, group="huggingface/ddp/fp32")]
    for score in scores[:3]:
        others = nodes_of([other for other in scores if other is not score])
        assert level_without(nodes_of(scores), score) == pytest.approx(level_of(others, score.group))


@pytest.mark.parametrize(("left_out", "want_median"), [(None, 2.5), (0, 3.0), (1, 3.0), (2, 2.0), (3, 2.0)])
def test_a_median_can_leave_one_out(left_out: int | None, want_median: float) -> None:
    """Of 1 2 3 4, with one of them gone."""
    assert median((1.0, 2.0, 3.0, 4.0), left_out) == want_median
