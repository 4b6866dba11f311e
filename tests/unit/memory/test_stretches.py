"""Which layers are walked for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory.builders import a_plan, a_transformer

from peakgate.memory.change import Value
from peakgate.memory.job import Lora
from peakgate.memory.stretches import stretches

FULL: dict[str, Value] = {"checkpointing.mode": "full"}
FSDP: dict[str, Value] = {"parallelism.sharding": "fsdp", "parallelism.world_size": 2}


@pytest.mark.parametrize(
    ("changes", "layers", "want"),
    [
        ({}, 1, [(1, 1, 0)]),
        ({}, 8, [(1, 1, 0), (7, 1, 0)]),
        (FULL, 8, [(1, 1, 1), (7, 1, 1)]),
        (FULL | {"checkpointing.every": 3}, 8, [(1, 3, 3), (1, 3, 3), (1, 2, 3)]),
        (FULL | {"checkpointing.every": 9}, 8, [(1, 8, 9)]),
        (FULL | {"checkpointing.layers": 2}, 8, [(1, 1, 1), (1, 1, 1), (1, 1, 0), (5, 1, 0)]),
        ({"checkpointing.mode": "selective", "checkpointing.layers": 2}, 8, [(1, 1, 0), (7, 1, 0)]),
        (FSDP, 8, [(1, 1, 0), (6, 1, 0), (1, 1, 0)]),
        (FSDP, 2, [(1, 1, 0), (1, 1, 0)]),
    ],
)
def test_equal_layers_are_walked_once(changes: dict[str, Value], layers: int, want: list[tuple[int, int, int]]) -> None:
    """(times, layers, layers a checkpoint): the first alone, its equals once for all, under FSDP the last alone too."""
    assert [(each.times, len(each.kinds), each.every) for each in stretches(a_plan(changes), layers)] == want


def test_under_adapters_the_second_layer_stands_alone() -> None:
    """No gradient asks for the first layer's tables, so the second is the first that holds them; a checkpoint holds them itself."""
    assert [each.times for each in stretches(a_plan(lora=Lora()), 8)] == [1, 1, 6]
    assert [each.times for each in stretches(a_plan(FULL, lora=Lora()), 8)] == [1, 7]


def test_a_pattern_is_one_stretch() -> None:
    """Gemma 3: five local layers and a global one; 14 layers are two patterns and two local layers more."""
    found = stretches(a_plan(model=a_transformer("gemma3", layers=14)), 14)
    assert [(each.times, each.kinds) for each in found] == [
        (1, ("local",) * 5 + ("global",)),
        (1, ("local",) * 5 + ("global",)),
        (1, ("local", "local")),
    ]


@given(st.integers(1, 40), st.integers(1, 7), st.integers(0, 9), st.sampled_from(["llama", "gemma3"]), st.booleans(), st.booleans())
def test_every_layer_is_there_in_order(layers: int, every: int, first: int, block: str, fsdp: bool, each: bool) -> None:
    """Repetitions count, the pattern goes on, checkpoints cover the first layers only, and numbers are unique."""
    changes = {**FULL, "checkpointing.every": every, "checkpointing.layers": first, **(FSDP if fsdp else {})}
    plan = a_plan(changes, model=a_transformer(block, layers=layers))
    found = stretches(plan, layers, each=each)
    kinds = [kind for stretch in found for kind in stretch.kinds * stretch.times]
    assert len(kinds) == layers
    covered = sum(stretch.times * len(stretch.kinds) for stretch in found if stretch.every)
    assert covered == min(first or layers, layers)
    assert kinds == [plan.architecture.pattern[i % len(plan.architecture.pattern)] for i in range(layers)]
    assert [stretch.number for stretch in found] == list(range(1, len(found) + 1))
    assert not each or all(stretch.times == 1 for stretch in found)
