"""Optimizers: states that stay, and what a step needs for a moment.

Sources: torch/optim/{adam,adamw,sgd,adafactor}.py (`_multi_tensor_*` makes a foreach copy of the square roots, `_single_tensor_*` two
tensors at a time, fused kernels nothing); research of traced steps for Adafactor and Muon; bitsandbytes optim/optimizer.py (8-bit
states in blocks of 256 with one fp32 scale each); transformers optimization.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerRow:
    """`copies` of each trained parameter in the format of the optimizer states; quantised ones have an fp32 scale a block of elements."""

    copies: int
    itemsize: int | None = None
    scaled_block: int = 0
    counters: bool = True
    """One fp32 step count a tensor."""
    paged: bool = False
    """States of tensors of at least PAGED_FROM elements are in managed memory, outside the allocator, and leave the GPU under pressure."""


PAGED_FROM = 100_000
"""bitsandbytes optim/optimizer.py, get_state_buffer: smaller tensors are not paged."""

ROWS: dict[str, OptimizerRow] = {
    "adamw": OptimizerRow(copies=2),
    "adam": OptimizerRow(copies=2),
    "lamb": OptimizerRow(copies=2),
    "sgd": OptimizerRow(copies=0, counters=False),
    "sgd-momentum": OptimizerRow(copies=1, counters=False),
    "lion": OptimizerRow(copies=1, counters=False),
    "muon": OptimizerRow(copies=1, counters=False),
    "adafactor": OptimizerRow(copies=0),  # a row and a column a matrix: below 0.1 % of it
    "adamw-8bit": OptimizerRow(copies=2, itemsize=1, scaled_block=256, counters=False),
    "adam-8bit": OptimizerRow(copies=2, itemsize=1, scaled_block=256, counters=False),
    "paged-adamw": OptimizerRow(copies=2, itemsize=4, counters=False, paged=True),
    "paged-adamw-8bit": OptimizerRow(copies=2, itemsize=1, scaled_block=256, counters=False, paged=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTemporary:
    """A multiple of all trained parameters, and of the largest one, in the format of the states."""

    all: int = 0
    largest: int = 0


ADAM_LIKE = ("adamw", "adam", "lamb")

TEMPORARIES: dict[tuple[str, str], StepTemporary] = {
    **{(name, "foreach"): StepTemporary(all=1) for name in ADAM_LIKE},
    **{(name, "for-loop"): StepTemporary(largest=2) for name in ADAM_LIKE},
    ("adafactor", "foreach"): StepTemporary(all=1),
    ("adafactor", "for-loop"): StepTemporary(largest=1),
    ("muon", "foreach"): StepTemporary(largest=2),
    ("muon", "for-loop"): StepTemporary(largest=2),
    ("lion", "foreach"): StepTemporary(all=1),
    ("lion", "for-loop"): StepTemporary(largest=1),
}


def step_temporary(name: str, implementation: str) -> StepTemporary:
    """What a step of this optimizer allocates for a moment; nothing for fused kernels and for SGD."""
    return TEMPORARIES.get((name, implementation), StepTemporary())


def temporary_events(nbytes: int, elements: Sequence[int], temporary: StepTemporary, numbered_to: int) -> list[tuple[int, int]]:
    """The step's temporaries as (allocation number, bytes), negative to free: foreach kernels make those of every weight and then let them
    go, a loop those of one weight after the other."""
    together = temporary.all > 0 or not temporary.largest
    pieces = 1 if together else max(1, temporary.largest)
    whole = sum(elements) if together else pieces * max(elements, default=1)
    sizes = [(i, nbytes * count // whole) for i, count in enumerate((e for e in elements for _ in range(pieces)), numbered_to + 1)]
    made, freed = [(i, size) for i, size in sizes if size], [(i, -size) for i, size in sizes if size]
    if together:
        return made + freed
    return [event for at in range(0, len(made), pieces) for event in (*made[at : at + pieces], *freed[at : at + pieces])]
