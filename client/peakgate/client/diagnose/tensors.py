"""Which tensor of a job has the size that an allocation asked for.

Sources of the sizes: "Reducing Activation Recomputation in Large Transformer Models" (Korthikanti et al. 2022), section 4, for activations;
ZeRO (Rajbhandari et al. 2020), section 3, for states; of the rounding: PyTorch c10/cuda/CUDACachingAllocator.cpp, round_size and
get_allocation_size (the message prints what is asked of the driver).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from peakgate.client.diagnose.dimensions import Dimensions
from peakgate.client.diagnose.messages import Size

BLOCK_BYTES, SMALL_BYTES, LARGE_BYTES, SEGMENT_BYTES, ROUND_BYTES = 512, 2**20, 10 * 2**20, 20 * 2**20, 2**21
"""kMinBlockSize, kSmallSize, kMinLargeAlloc, kLargeBuffer, kRoundLarge; a small segment (kSmallBuffer) is as large as the last."""

NEAR = 0.005
"""Relative: a vocabulary that was padded, a count of parameters in a paper's three digits."""

NEAR_FROM_BYTES = 64 * 2**20
"""Below it tensors lie too near to each other for a likeness to say anything."""

FORMATS = {4: "float32", 2: "16-bit"}
_STEP = ("forward", "loss", "backward", "evaluation")


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of tensor: factors of its elements by their symbols, and the ledger's category by the stages in which it is made."""

    item: str
    factors: tuple[str, ...]
    categories: Mapping[str, str]


ROWS = (
    Row("logits", ("b", "s", "V"), dict.fromkeys(("loss", "forward", "backward", "evaluation"), "logits")),
    Row("logits of all positions but the last", ("b", "s-1", "V"), dict.fromkeys(("loss", "forward", "backward", "evaluation"), "logits")),
    Row("attention scores of one layer", ("b", "a", "s", "s"), dict.fromkeys(_STEP, "activations")),
    Row("inner values of one feed-forward part", ("b", "s", "f"), dict.fromkeys(_STEP, "activations")),
    Row("hidden states of one layer", ("b", "s", "h"), dict.fromkeys(_STEP, "activations")),
    Row("queries, keys and values of one layer", ("b", "s", "q+2k"), dict.fromkeys(_STEP, "activations")),
    Row(
        "weights of one layer, gathered or copied whole",
        ("layer",),
        {
            "load": "parameters",
            "forward": "communication",
            "backward": "communication",
            "save": "communication",
            "first-step": "temporaries",
        },
    ),
    Row(
        "embedding or output matrix",
        ("V", "h"),
        {"load": "parameters", "backward": "gradients", "forward": "communication", "first-step": "temporaries"},
    ),
    Row(
        "one matrix of a feed-forward part",
        ("h", "f"),
        {"load": "parameters", "backward": "gradients", "forward": "temporaries", "first-step": "temporaries"},
    ),
    Row(
        "gradients of all trained parameters in one buffer",
        ("T",),
        {"backward": "gradients", "first-step": "temporaries"},
    ),
    Row(
        "a copy of all parameters",
        ("P",),
        {"setup": "master_weights", "load": "parameters", "save": "communication", "first-step": "master_weights"},
    ),
    Row(
        "one rank's share of all trained parameters",
        ("T/shards",),
        {"first-step": "temporaries", "setup": "master_weights", "load": "parameters", "backward": "gradients"},
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A candidate. `formula` shows where its size comes from; `exact`: the message's digits are its own."""

    item: str
    formula: str
    bytes: int
    categories: Mapping[str, str]
    exact: bool = True

    def category(self, stage: str) -> str:
        """The ledger's category of it in a stage; without a known one, of the stage where it is made first."""
        return self.categories.get(stage) or next(iter(self.categories.values()))


def candidates(sizes: Dimensions) -> Iterator[Tensor]:
    """Every tensor of the table whose factors are known, in both formats."""
    for row in ROWS:
        factors = [_factor(sizes, symbol) for symbol in row.factors]
        if not all(factors) or (row.factors == ("T/shards",) and sizes.shards < 2):
            continue
        for width, name in FORMATS.items():
            formula = " x ".join([*(f"{each:,}" for each in factors), f"{width} bytes"])
            yield Tensor(item=f"{row.item}, {name}", formula=formula, bytes=prod(factors) * width, categories=row.categories)


def _factor(sizes: Dimensions, symbol: str) -> int:
    if symbol == "s-1":
        return max(0, sizes.s - 1)
    if symbol == "q+2k":
        return sizes.q + 2 * sizes.k
    if symbol == "T/shards":
        return -(-sizes.T // sizes.shards)
    return int(getattr(sizes, symbol))


def matching(tried: Size, tensors: Sequence[Tensor], stage: str, *, by_allocator: bool) -> list[Tensor]:
    """The tensors that asked for `tried`, those of the stage first; what is only near it when none is. `by_allocator`: it was printed as
    PyTorch asks the driver, in whole segments."""
    if by_allocator and tried.bytes <= SEGMENT_BYTES:
        return []  # anything of up to 10 MiB asks for as much
    found = []
    for each in tensors:
        asked = asked_bytes(each.bytes) if by_allocator else each.bytes
        away = abs(asked - tried.bytes)
        if away <= max(tried.slack_bytes, BLOCK_BYTES):
            found.append((0, each))
        elif away <= NEAR * tried.bytes and tried.bytes >= NEAR_FROM_BYTES:
            found.append((1, each))
    best = min((near for near, _ in found), default=0)
    kept = sorted((each for near, each in found if near == best), key=lambda each: stage not in each.categories)
    return [replace(each, exact=not best) for each in kept]


def asked_bytes(size: int) -> int:
    """What the allocator asks the driver for, when no cached block is free for a tensor of `size` bytes."""
    block = -(-size // BLOCK_BYTES) * BLOCK_BYTES
    if block <= SMALL_BYTES:
        return ROUND_BYTES
    return SEGMENT_BYTES if block < LARGE_BYTES else -(-block // ROUND_BYTES) * ROUND_BYTES
