"""Stages of a pipeline: their layers and the micro-batches that each holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.memory.pipeline import distinct, in_flight, stages
from peakgate.memory.plan import Degrees


def held(degrees: Degrees, micro_batches: int) -> list[int]:
    """Micro-batches or chunks in flight, stage by stage."""
    return [in_flight(degrees, stage, micro_batches) for stage in range(degrees.pipeline)]


@pytest.mark.parametrize(
    ("degrees", "micro_batches", "want"),
    [
        (Degrees(), 8, [1]),
        (Degrees(pipeline=4), 8, [4, 3, 2, 1]),
        (Degrees(pipeline=4), 2, [2, 2, 2, 1]),
        (Degrees(pipeline=4, schedule="gpipe"), 8, [8, 8, 8, 8]),
        (Degrees(pipeline=4, virtual_pipeline=2), 8, [11, 9, 7, 5]),
        (Degrees(pipeline=4, virtual_pipeline=2, schedule="interleaved-1f1b"), 4, [8, 8, 7, 5]),
        (Degrees(pipeline=2, virtual_pipeline=3, schedule="gpipe"), 4, [12, 12]),
        (Degrees(pipeline=4, schedule="zero-bubble"), 8, [4, 4, 4, 4]),
        (Degrees(pipeline=4, virtual_pipeline=2, schedule="zero-bubble"), 8, [8, 8, 8, 8]),
        (Degrees(pipeline=4, schedule="zero-bubble"), 3, [3, 3, 3, 3]),
    ],
)
def test_a_stage_holds_what_its_schedule_says(degrees: Degrees, micro_batches: int, want: list[int]) -> None:
    """1F1B: p - i; interleaved: (p - i - 1)·2 + (v - 1)·p + 1 chunks; GPipe: all; zero-bubble: v·p on every stage; never more
    than there are."""
    assert held(degrees, micro_batches) == want


def test_layers_that_do_not_divide_go_to_the_first_stages() -> None:
    """10 layers on 4 stages."""
    split = stages(Degrees(pipeline=4), 10, 1)
    assert [stage.layers for stage in split] == [3, 3, 2, 2]
    assert [(stage.embeds, stage.heads) for stage in split] == [(True, False), (False, False), (False, False), (False, True)]


def test_stated_layers_win() -> None:
    """An uneven split, as large vocabularies ask for."""
    split = stages(Degrees(pipeline=3, stage_layers=(2, 5, 3)), 10, 6)
    assert [(stage.layers, stage.in_flight) for stage in split] == [(2, 3), (5, 2), (3, 1)]


def test_one_stage_embeds_and_heads() -> None:
    """Without a pipeline one stage holds everything."""
    (stage,) = stages(Degrees(), 7, 4)
    assert (stage.layers, stage.embeds, stage.heads, stage.in_flight, stage.chunks) == (7, True, True, 1, 1)


def test_a_stage_that_another_covers_is_not_walked() -> None:
    """Of four equal stages the first and last differ, and of the middle ones only the one with most in flight is worth a walk: it also
    holds what it receives."""
    assert [stage.number for stage in distinct(stages(Degrees(pipeline=4), 16, 8))] == [0, 1, 3]
    assert [stage.number for stage in distinct(stages(Degrees(pipeline=4, stage_layers=(1, 6, 6, 3)), 16, 8))] == [0, 1, 3]


@given(
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(1, 3),
    st.sampled_from(["1f1b", "gpipe", "zero-bubble"]),
    st.integers(1, 64),
)
def test_a_stage_left_out_is_covered(pipeline: int, layers: int, virtual: int, schedule: str, micro_batches: int) -> None:
    """Every stage that is not walked has a walked one with no fewer layers and micro-batches, and no head of its own."""
    degrees = Degrees(pipeline=pipeline, virtual_pipeline=virtual, schedule=schedule)
    split = stages(degrees, max(layers, pipeline), micro_batches)
    assert sum(stage.layers for stage in split) == max(layers, pipeline)
    walked = distinct(split)
    for stage in split:
        assert any(
            each.layers >= stage.layers and each.in_flight >= stage.in_flight and each.embeds >= stage.embeds and each.heads >= stage.heads
            for each in walked
        )
