"""What one layer keeps for its backward pass, tensor by tensor, read off the walk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peakgate.memory.checkpoint import Segment
from peakgate.memory.exercises.lesson import plan_of
from peakgate.memory.forward import ForwardPass
from peakgate.memory.job import Job
from peakgate.memory.kernels import Formula
from peakgate.memory.library import KERNELS
from peakgate.memory.machine import ENDS
from peakgate.memory.meter import Meter, exact
from peakgate.memory.pipeline import Stage
from peakgate.memory.profiles import profile_of
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Node, Parameter, Tensor

WORDS = {"x": "input", "y": "output", "m": "mask", "x0": "first factor", "x1": "second factor"}
"""What the rows of the kernel table call their tensors (`kernels.py`)."""


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that an operation keeps. One that several operations keep is listed with the first of them."""

    operation: str
    tensor: str
    bytes: int


def saved_tensors(job: Job) -> tuple[SavedTensor, ...]:
    """What autograd keeps for the first layer of a job in the textbook's terms, in the order of the forward pass.

    A checkpoint keeps its inputs. A view keeps its whole storage: what no view of it shows is a row of its own, at the end.
    """
    left: dict[int, int] = {}
    rows = []
    for operation, tensor, nbytes, storage in _kept(_nodes(job)):
        size = min(nbytes, left.setdefault(storage.number, storage.nbytes))
        left[storage.number] -= size
        if size:
            rows.append(SavedTensor(operation, tensor, size))
    return (*rows, *(SavedTensor("view", "rest of storage", size) for size in left.values() if size))


def _nodes(job: Job) -> list[Node]:
    """What the forward pass of one layer records; raises ValueError where the shared tables of a real framework would be in it."""
    plan = plan_of(job)
    if plan.profile != "textbook":
        raise ValueError(f"framework.name is {plan.framework!r}: the list is the lesson's, and takes only textbook")
    stage = Stage(number=0, layers=1, embeds=True, heads=False, in_flight=1, chunks=1)
    step = ForwardPass(plan, stage, Meter(exact, profile_of(plan.profile).ignored), each=True)
    step.sharding.begin()
    step.forward_layers()
    return [node for node in step.machine.tape.nodes if node.layer != ENDS]


Kept = tuple[str, str, int, Storage]
"""(operation, tensor, bytes, storage): several views may share a storage."""


def _kept(nodes: list[Node]) -> Iterator[Kept]:
    """Everything that a node or a checkpoint holds, each tensor once."""
    seen: set[int] = set()
    for node in nodes:
        for identity, kept in (*_by_node(node), *_by_checkpoint(node)):
            if identity not in seen:
                seen.add(identity)
                yield kept


def _by_node(node: Node) -> Iterator[tuple[int, Kept]]:
    for name, storage in sorted(node.saved.items(), key=lambda item: [*node.operands, item[0]].index(item[0])):
        tensor = node.operands.get(name)
        if isinstance(tensor, Tensor):
            yield id(tensor), (_operation(node), _name(tensor, name), tensor.nbytes, storage)
        else:
            yield id(storage), (_operation(node), WORDS.get(name, name), storage.nbytes, storage)


def _by_checkpoint(node: Node) -> Iterator[tuple[int, Kept]]:
    """The inputs of the stretch that is run again before this node's backward pass."""
    segment = getattr(node.before, "__self__", None)
    if isinstance(segment, Segment):
        for tensor in segment.held:
            yield id(tensor), ("checkpoint", _name(tensor, "x"), tensor.nbytes, tensor.storage)


def _operation(node: Node) -> str:
    """The name of the node's weight, such as `linear.qkv`, or else of its kernel."""
    weights = [each.name for each in node.operands.values() if isinstance(each, Parameter)]
    return weights[0] if weights else _kernel_of(node.formula)


def _kernel_of(formula: Formula) -> str:
    """The kernel that a formula belongs to: equal formulas of two kernels are two objects."""
    return next(kernel.name for kernel in KERNELS.values() if any(formula is each for each in kernel.formulas.values()))


def _name(tensor: Tensor, name: str) -> str:
    return tensor.output if tensor.output in ("q", "k", "v") else WORDS.get(name, name)
