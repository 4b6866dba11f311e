"""What the allocator sees of a Megatron-LM run: the model is built, a first step meets every shape, optimizer states come last.

megatron/core/distributed/param_and_grad_buffer.py: the weights are made one by one, then one buffer takes them all and another their
main gradients, and the single weights go. optimizer/distrib_optimizer.py: the rank owns a slice of the buffer, which runs from the last
weight to the first, and holds fp32 copies of the weights in it; their moments appear in the first step, in memory that its activations
have left. pipeline_parallel/schedules.py: one forward and one backward pass in turn, after the stage's warm-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.meter import Event
from peakgate.memory.optimizers import ROWS
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.step import Walk
from peakgate.memory.weights import Weight

STATES = ("parameters", "gradients", "master_weights", "optimizer_states")

MORE_THAN_WARM_UP = 2
"""Micro-batches that are replayed beyond those in flight: what comes later finds the same blocks."""

RANKS = 4
"""Ranks whose slices are replayed, at most."""

APART = 1 << 32
"""Between the allocation numbers of one micro-batch and the next."""


def ranks_of(plan: Plan) -> list[int]:
    """Data parallel ranks worth a replay, spread evenly: they hold the same bytes in tensors of other sizes."""
    shard = plan.degrees.shard if plan.degrees.sharding == "zero1" else 1
    return sorted({i * shard // RANKS for i in range(RANKS)})


def run_events(plan: Plan, stage: Stage, walked: Walk, resident: Sequence[LedgerLine], rank: int = 0) -> tuple[list[Event], list[Event]]:
    """(everything up to the end of the first step, one further step) of one data parallel rank."""
    groups, itemsizes = _groups(plan, walked.weights), _itemsizes(plan, resident, walked)
    forward, backward = walked.events[: walked.head_at], walked.events[walked.head_at :]  # a head's backward pass follows it at once
    in_flight = -(-stage.in_flight // stage.chunks)
    step = list(schedule(forward, backward, in_flight, min(plan.accumulation, in_flight + MORE_THAN_WARM_UP)))
    head = walked.backward_at - walked.head_at
    met = len(forward) * min(in_flight, plan.accumulation) + head  # the first backward pass meets what stays: stand-ins, workspaces
    owned = [elements for group in groups for elements in _slice(group, rank)]
    return [
        *_built(groups, itemsizes),
        *_stays(int(elements * itemsizes["master_weights"]) for elements in owned),
        *step[:met],
        *_stays(_others(resident)),
        *step[met:],
        *_stays(int(elements * itemsizes["optimizer_states"]) // 2 for elements in owned for _ in range(2)),
    ], step


def schedule(forward: Sequence[Event], backward: Sequence[Event], in_flight: int, micro_batches: int) -> Iterator[Event]:
    """One forward, one backward: all events of a step, each micro-batch with numbers of its own.

    What a micro-batch leaves behind (the loop's locals) goes after the next one's backward pass, and the last one's at the end.
    """
    left = _left(forward, backward)
    for i in range(micro_batches + in_flight - 1):
        if i < micro_batches:
            yield from _numbered(forward, i)
        done = i - in_flight + 1
        if done >= 0:
            yield from _numbered(backward, done)
            if done:
                yield from _numbered(left, done - 1)
    yield from _numbered(left, micro_batches - 1)


def streams_of(plan: Plan, stage: Stage, walked: Walk) -> dict[int, str]:
    """The streams of a schedule's allocations: those of one micro-batch, under the numbers of each."""
    micro_batches = min(plan.accumulation, -(-stage.in_flight // stage.chunks) + MORE_THAN_WARM_UP)
    return {number + (i + 1) * APART: stream for number, stream in walked.streams.items() for i in range(micro_batches)}


def _left(forward: Sequence[Event], backward: Sequence[Event]) -> list[Event]:
    """Frees of what a micro-batch does not free itself."""
    alive: dict[int, int] = {}
    for number, nbytes in (*forward, *backward):
        if nbytes > 0:
            alive[number] = nbytes
        else:
            alive.pop(number, None)
    return [(number, -nbytes) for number, nbytes in alive.items()]


def _numbered(events: Sequence[Event], micro_batch: int) -> Iterator[Event]:
    return ((number + (micro_batch + 1) * APART, nbytes) for number, nbytes in events)


def _stays(sizes: Iterable[int]) -> Iterator[Event]:
    return ((0, size) for size in sizes if size)


Group = tuple[list[int], int]
"""Elements of each weight of a buffer, and over how many ranks its optimizer states are divided."""


def _groups(plan: Plan, weights: list[Weight]) -> list[Group]:
    """Experts have buffers and data parallel ranks of their own."""
    degrees = plan.degrees
    shard = degrees.shard if degrees.sharding == "zero1" else 1
    dense = [elements for w in weights if not w.name.startswith("experts.") for elements in _tensors(w)]
    experts = [elements for w in weights if w.name.startswith("experts.") for elements in _tensors(w)]
    return [(dense, shard), (experts, degrees.expert_shard or shard)]


def _tensors(weight: Weight) -> list[int]:
    """Elements of each tensor: the experts of a layer are matrices of their own."""
    single = weight.shape[0] * weight.shape[1] if weight.shape else weight.elements
    return [single] * (weight.count * (weight.elements // single)) if single else []


def _itemsizes(plan: Plan, resident: Sequence[LedgerLine], walked: Walk) -> dict[str, float]:
    """Bytes an element of each state that is on the GPU; of weights that are partly 8-bit the mean."""
    formats, present = plan.formats, {line.category for line in resident}
    copies = ROWS[plan.optimizer].copies
    sizes = {
        "parameters": walked.states.parameters / max(1, walked.states.elements),
        "gradients": ITEMSIZE[formats.gradients],
        "master_weights": ITEMSIZE[formats.master_weights],
        "optimizer_states": copies * ITEMSIZE[formats.optimizer_states],
    }
    return {key: size if key in present else 0 for key, size in sizes.items()}


def _others(resident: Sequence[LedgerLine]) -> list[int]:
    """Sizes of all lines but the states: the first of each of their categories."""
    seen: set[str] = set()
    out: list[int] = []
    for line in resident:
        if line.category in STATES and line.category not in seen:
            seen.add(line.category)
        else:
            out.append(line.bytes)
    return out


def _built(groups: list[Group], itemsizes: dict[str, float]) -> list[Event]:
    """Weights one by one, the buffers, and the weights go."""
    sizes = (int(itemsizes["parameters"] * elements) for weights, _ in groups for elements in weights)
    single = list(enumerate(sizes, 1))
    buffers = _stays(int(sum(weights) * itemsizes[key]) for weights, _ in groups for key in ("parameters", "gradients"))
    return [*single, *buffers, *((number, -nbytes) for number, nbytes in single)]


def _slice(group: Group, rank: int) -> Iterator[int]:
    """Elements of each weight in a rank's slice of a buffer, which runs from the last weight to the first."""
    weights, shard = group
    length = -(-sum(weights) // shard)
    low, at = min(rank, shard - 1) * length, 0
    for elements in reversed(weights):
        yield max(0, min(at + elements, low + length) - max(at, low))
        at += elements
