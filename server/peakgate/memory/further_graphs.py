"""Graphs beside the first one: a loss that calls autograd with create_graph=True records its backward pass as well.

How much they keep depends on the formulas of second derivatives, so the job states it as a factor on what the first graph keeps (measured
once with `torch.cuda.memory_allocated` in front of the last backward pass, with and without the term).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from peakgate.memory.meter import Meter
from peakgate.memory.plan import Plan


@contextmanager
def further_graphs(plan: Plan, meter: Meter, saved_bytes: int) -> Iterator[None]:
    """They are there before the last backward pass begins and, as nothing names a part of them, until it is over."""
    size = saved_bytes * plan.further_graphs_permille // 1000
    number = meter.add(size, size, "activations")
    yield
    meter.sub(size, size, "activations", number)
