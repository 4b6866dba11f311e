"""The values that a numeric field can be tried with, numbered from 0 in rising order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from peakgate.memory.absurd import LARGEST
from peakgate.memory.change import value_at
from peakgate.memory.check import SHARES
from peakgate.memory.job import Job
from peakgate.server.moves import GPU_COUNTS

LARGEST_VALUE = 1 << 24
"""Where the search for a field's extreme value ends: 16 million tokens, layers or sequences are beyond any job."""

LARGEST_SIZE = 1 << 50
"""The same for sizes in bytes and for bare parameter counts: 1 PiB."""

DEGREES = (*range(1, 65), *(1 << power for power in range(7, 15)))
"""Values that must divide sizes of the job: the small ones all, then powers of two up to 16,384 (Llama 3, arXiv 2407.21783 §3.3.1)."""

SPARSE = ("parallelism.", "gpu.count", "model.transformer.heads", "model.transformer.kv_heads")
"""Fields of which few values are legal."""

MAY_GROW = ("parallelism.virtual_pipeline", "model.transformer.heads", "model.transformer.kv_heads")
"""Those of which more can need more: interleaving holds more micro-batches in flight, heads have scores and keys of their own."""

SHARE_STEP = 0.01
"""Resolution of a field from 0 to 1; a hundredth of a card or of the saved activations is finer than anybody sets it."""

FACTOR_STEP = 0.001
"""Resolution of a factor from 1 on: the memory model counts in thousandths (`Degrees.imbalance_permille`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Value i is `lowest + i × step`, up to index `last`; or, for a field of few legal values, the i-th of `sparse`.

    `bounded`: the last value is the field's own limit, and not where the search gives up. `digits` of a value that is no integer.
    """

    lowest: float = 1
    step: float = 1
    last: int = 0
    bounded: bool = False
    digits: int = 0
    sparse: tuple[int, ...] = ()
    may_grow: bool = False
    """Of a field of few legal values: more of it may need more. Otherwise the smallest that fits is looked for: GPUs are dear."""

    def in_steps_of(self, step: int) -> Domain:
        """The multiples of `step` among these integers."""
        return replace(self, lowest=step, step=step, last=(self.last + 1) // step - 1)

    def value(self, index: int) -> int | float:
        """The value with this number."""
        if self.sparse:
            return self.sparse[index]
        value = self.lowest + index * self.step
        return round(value, self.digits) if self.digits else int(value)

    def indices(self) -> Sequence[int]:
        """All of them, of a field of few legal values."""
        return range(len(self.sparse))

    def doublings(self) -> Iterator[int]:
        """Indices whose values double, with both ends."""
        index = 0
        while index < self.last:
            yield index
            index = 2 * index + 1
        yield self.last


def domain_of(job: Job, path: str, kind: type) -> Domain:
    """What to try for a field of `kind` int or float."""
    if kind is float:
        return _shares() if path in SHARES else _factors(path)
    if path.startswith(SPARSE):
        return Domain(sparse=_degrees(job, path), may_grow=path in MAY_GROW)
    limit = LARGEST_SIZE if path.endswith(("_bytes", "parameters")) else LARGEST_VALUE
    return Domain(last=limit - 1)


def _degrees(job: Job, path: str) -> tuple[int, ...]:
    """Degrees, and of a number of GPUs their multiples of the GPUs that hold one copy of the model; with the stated value."""
    p, stated = job.parallelism, value_at(job, path)
    unit = (p.tensor or 1) * (p.pipeline or 1) * (p.context or 1) if path in GPU_COUNTS else 1
    return tuple(sorted({*(unit * degree for degree in DEGREES), *((stated,) if isinstance(stated, int) and stated > 0 else ())}))


def _shares() -> Domain:
    return Domain(lowest=0, step=SHARE_STEP, last=round(1 / SHARE_STEP), bounded=True, digits=2)


def _factors(path: str) -> Domain:
    return Domain(lowest=1, step=FACTOR_STEP, last=round((LARGEST[path] - 1) / FACTOR_STEP), digits=3)
