"""How many GPUs of each type a request comes to, on a node and in all. Pure.

Slurm's own rules (`gres_job_state_validate` and what it calls, in src/common/gres.c, since 23.02 in src/interfaces/gres.c): what is asked
for a node, a socket or a task is multiplied by the nodes, sockets and tasks that were stated; demands of several kinds hold together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from peakgate.hooks.slurm.amounts import AT_LEAST_ONE, Amount
from peakgate.hooks.slurm.fields import Fields
from peakgate.hooks.slurm.tres import Item

PER_NODE, PER_JOB, PER_TASK, PER_SOCKET = "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"


# (nodes, most nodes, tasks) of a job that fits on one node as far as its tasks go.
_ONE = frozenset((nodes, None, tasks) for nodes in (None, 1) for tasks in (None, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """GPUs of one type, or of any where it is empty. `per_node`: None when the scheduler decides."""

    type: str = ""
    per_node: Amount | None = None
    total: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a job is spread: None where nothing was stated."""

    nodes: Amount = AT_LEAST_ONE
    is_small: bool = False
    """Neither more nodes than one nor more tasks were asked for."""

    tasks: int | None = None
    tasks_per_node: int | None = None
    tasks_per_socket: int | None = None
    tasks_per_gpu: int | None = None
    sockets_per_node: int | None = None
    cpus_per_task: int | None = None

    def all_tasks(self) -> Amount:
        """Without a number of tasks there is one a node, or more where a task's CPUs leave it open."""
        if self.tasks is not None:
            return Amount(self.tasks)
        if self.tasks_per_node is not None:
            return self.nodes.times(self.tasks_per_node)
        return self.nodes if self.cpus_per_task is None else replace(self.nodes, is_at_least=True)

    def all_sockets(self) -> Amount:
        """Of the job."""
        if self.sockets_per_node is not None:
            return self.nodes.times(self.sockets_per_node)
        if self.tasks is not None and self.tasks_per_socket is not None:
            return Amount(math.ceil(self.tasks / self.tasks_per_socket))
        return replace(self.nodes, is_at_least=True)


def shape_of(fields: Fields) -> Shape:
    """As stated. A number of nothing is none: a field of a job that was never set reads 0."""

    def number(name: str) -> int | None:
        return fields.number(name) or None

    least, most, tasks = number("min_nodes"), number("max_nodes"), number("num_tasks")
    return Shape(
        nodes=Amount(least, is_at_least=most != least) if least else AT_LEAST_ONE,
        is_small=(least, most, tasks) in _ONE and not fields.is_change,
        tasks=tasks,
        tasks_per_node=number("ntasks_per_node"),
        tasks_per_socket=number("ntasks_per_socket"),
        tasks_per_gpu=number("ntasks_per_gpu") or number("ntasks_per_tres"),
        sockets_per_node=number("sockets_per_node"),
        cpus_per_task=number("cpus_per_task"),
    )


def gpus_asked(wanted: Mapping[str, Sequence[Item]], shape: Shape) -> tuple[tuple[Asked, ...], Amount]:
    """GPUs by type, and the nodes that follow from them. Where one type is named, what names none is of that type too."""
    types = list(dict.fromkeys(item.type for items in wanted.values() for item in items))
    named = [kind for kind in types if kind]
    if len(named) == 1:
        wanted = {per: [replace(item, type=named[0]) for item in items] for per, items in wanted.items()}
        types = named
    if not types and shape.tasks_per_gpu and shape.tasks and shape.tasks >= shape.tasks_per_gpu:
        total = Amount(shape.tasks // shape.tasks_per_gpu)
        return (Asked(total=total, per_node=_alone(total, shape.nodes)),), shape.nodes
    demands = {kind: {per: max(found) for per, items in wanted.items() if (found := _counts(items, kind))} for kind in types}
    nodes = _nodes(list(demands.values()), shape)
    shape = replace(shape, nodes=nodes)
    return tuple(_asked(kind, demand, shape) for kind, demand in demands.items()), nodes


def _counts(items: Sequence[Item], kind: str) -> list[int]:
    return [item.count for item in items if item.type == kind]


def _nodes(demands: Sequence[Mapping[str, int]], shape: Shape) -> Amount:
    """GPUs in all and GPUs a node make the number of nodes; one task with GPUs of one node gets one node."""
    for demand in demands:
        total, each = demand.get(PER_JOB), demand.get(PER_NODE)
        if shape.nodes.is_at_least and total and each and total % each == 0 and total // each >= shape.nodes.count:
            return Amount(total // each)
    on_one_node = shape.is_small and all(set(demand) == {PER_NODE} for demand in demands)
    return Amount(1) if demands and on_one_node else shape.nodes


def _asked(kind: str, demand: Mapping[str, int], shape: Shape) -> Asked:
    spread = {
        PER_NODE: shape.nodes,
        PER_JOB: Amount(1),
        PER_TASK: shape.all_tasks(),
        PER_SOCKET: shape.all_sockets(),
    }
    total = Amount.largest(spread[per].times(count) for per, count in demand.items()) or AT_LEAST_ONE
    return Asked(type=kind, per_node=_per_node(demand, total, shape), total=total)


def _per_node(demand: Mapping[str, int], total: Amount, shape: Shape) -> Amount | None:
    if PER_NODE in demand:
        return Amount(demand[PER_NODE])
    if PER_TASK in demand and PER_JOB not in demand and shape.tasks is None:
        return Amount(demand[PER_TASK]).times(shape.tasks_per_node or Amount(1, is_at_least=shape.cpus_per_task is not None))
    if PER_SOCKET in demand and shape.sockets_per_node is not None:
        return Amount(demand[PER_SOCKET] * shape.sockets_per_node)
    return _alone(total, shape.nodes)


def _alone(total: Amount, nodes: Amount) -> Amount | None:
    """All of them when there is only one node."""
    return total if nodes == Amount(1) else None
