"""Polynomials as a Python function of numpy arrays: what `program.py` writes for one shape, for many plans at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from peakgate.memory.allocator import MIB, OWN_SEGMENT_FROM, ROUND, SEGMENT_ROUND
from peakgate.memory.forms import added
from peakgate.memory.program import Program, made_of
from peakgate.memory.trace import Comparison, Terms

Integers = NDArray[np.int64]
Evaluation = tuple[NDArray[np.bool_], tuple[Integers, ...]]
"""(for which plans the comparisons come out as they did, the figures of every plan); a figure that is always the same has no axis."""

EvaluateArrays = Callable[..., Evaluation]


@dataclass(slots=True)
class ArrayProgram(Program):
    """Writes one function of arrays of one length."""

    def compare(self, comparison: Comparison) -> None:
        """Marks the plans for which a comparison does not come out as it did."""
        relation = {(">", True): ">", (">", False): "<=", ("==", True): "==", ("==", False): "!="}[comparison.relation, comparison.holds]
        self.lines.append(f"ok &= ({self.expression(comparison.terms)}) {relation} 0")

    def highest(self, group: int, rows: Sequence[Terms]) -> None:
        """The largest of some polynomials; each is written as what it differs by from the one before."""
        self.lines.append(f"h{group} = x = {self.expression(rows[0])}")
        for before, terms in pairwise(rows):
            change = added(terms, before, -1)
            step = self.expression(change) if len(change) < len(terms) else ""
            self.lines.append(f"x = x + {step}" if step else f"x = {self.expression(terms)}")
            self.lines.append(f"h{group} = maximum(h{group}, x)")

    def arrays(
        self, variables: int, plain: Iterable[Terms], groups: Sequence[Sequence[Terms]], holding: Iterable[Comparison]
    ) -> EvaluateArrays:
        """The function of the first `variables` factors: whether the comparisons hold, then the plain figures and each group's highest."""
        for comparison in holding:
            self.compare(comparison)
        for group, rows in enumerate(groups):
            self.highest(group, rows)
        figures = "".join(f"{self.expression(terms)}, " for terms in plain)
        highest = "".join(f"h{group}, " for group in range(len(groups)))
        head = f"def evaluate({', '.join(f'f{number}' for number in range(variables))}):"
        lines = (head, "ok = ones(len(f0), dtype=bool)", *self.lines, f"return ok, ({figures}{highest})")
        evaluate: EvaluateArrays = made_of(lines, ones=np.ones, maximum=np.maximum, where=np.where, bits=_bits)
        return evaluate

    def rounded(self, kind: str, name: str, of: str, by: str) -> list[str]:
        """A rounded part, by its kind."""
        return ROUNDED[kind](name, of, by)


def _bits(numbers: Integers) -> Integers:
    """`int.bit_length` of numbers below 2^53."""
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def _block(name: str, of: str, _: str) -> list[str]:
    """`allocator.block_bytes`, written out; the roundings are to powers of two."""
    return [
        f"r = (({of}) + {ROUND - 1}) & -{ROUND}",
        f"s = (r + {SEGMENT_ROUND - 1}) & -{SEGMENT_ROUND}",
        f"{name} = where((r >= {OWN_SEGMENT_FROM}) & (s - r <= {MIB}), s, r)",
    ]


ROUNDED: dict[str, Callable[[str, str, str], list[str]]] = {
    "block": _block,
    "floor": lambda name, of, by: [f"{name} = ({of}) // ({by})"],
    "ceil": lambda name, of, by: [f"{name} = -(-({of}) // ({by}))"],
    "bits": lambda name, of, _: [f"{name} = bits({of})"],
    "power": lambda name, of, _: [f"{name} = 1 << ({of})"],
}
