"""Which kernels a layer may run: its blocks, followed down to the operations that are none."""

from __future__ import annotations

from peakgate.memory import context_parallel
from peakgate.memory.library import BLOCKS
from peakgate.memory.plan import Plan
from peakgate.memory.roles import roles_of


def kernels_of(plan: Plan, kind: str) -> set[str]:
    """Names of all operations below the layer of `kind` that are no blocks."""
    roles, seen, found = roles_of(plan, kind), set[str](), set[str]()
    waiting = ["layer", "core"]
    while waiting:
        name = waiting.pop()
        name = roles.get(roles.get(name, name), roles.get(name, name))
        if name in seen:
            continue
        seen.add(name)
        if name in BLOCKS:
            waiting += [line.operation for line in BLOCKS[name].lines]
        else:
            found.add(name)
    return found | ({roles["compiled_kernel"]} if "compiled_kernel" in roles else set())


def attends_across_ranks(plan: Plan) -> bool:
    """Whether every kind of layer has an attention that is counted under context parallelism."""
    kinds = dict.fromkeys((*plan.architecture.encoder, *plan.architecture.pattern))
    return all(any(context_parallel.crosses_ranks(name) for name in kernels_of(plan, kind)) for kind in kinds)
