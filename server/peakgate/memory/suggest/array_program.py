"""Polynomials as a Python function of numpy arrays: what `program.py` writes for one shape, for many plans at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peakgate.memory.allocator import MIB, OWN_SEGMENT_FROM, ROUND, SEGMENT_ROUND
from peakgate.memory.forms import added
from peakgate.memory.program import ROUNDED as SCALAR_ROUNDED
from peakgate.memory.program import Program, made_of
from peakgate.memory.trace import Comparison, Monomial, Terms

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

Holds = Callable[..., Flags]
"""For which plans the comparisons come out as they did; one entry where that is the same for all."""

EvaluateArrays = Callable[..., tuple[Integers, ...]]
"""The figures of every plan; one that is the same for all may be a number, as the factors may be that are the same for all."""

AS_IT_DID = {(">", True): ">", (">", False): "<=", ("==", True): "==", ("==", False): "!="}


@dataclass(slots=True)
class ArrayProgram(Program):
    """Writes one function of arrays of one length."""

    multiples: dict[tuple[int, str], str] = field(default_factory=dict)
    """Names of products of a number and an array: most stand in many rows."""

    def expression(self, terms: Terms) -> str:
        """A polynomial; what it needs is written before."""
        signed = [self._signed(monomial, coefficient) for monomial, coefficient in terms.items()]
        signed.sort()  # "+" comes before "-"
        return " ".join(signed).removeprefix("+ ") or "0"

    def _signed(self, monomial: Monomial, coefficient: int) -> str:
        sign, times = ("-", -coefficient) if coefficient < 0 else ("+", coefficient)
        if not monomial:
            return f"{sign} {times}"
        product = self._product(monomial)
        return f"{sign} {product if times == 1 else self._multiple(times, product)}"

    def _multiple(self, times: int, product: str) -> str:
        known = self.multiples.get((times, product))
        if known is None:
            known = self.multiples[times, product] = f"m{len(self.multiples)}"
            self.lines.append(f"{known} = {times}*{product}")
        return known

    def highest(self, group: int, rows: Sequence[Terms]) -> None:
        """The largest of some polynomials; each is written as what it differs by from the one before."""
        self.lines.append(f"h{group} = x = {self.expression(rows[0])}")
        for before, terms in pairwise(rows):
            change = added(terms, before, -1)
            step = self.expression(change) if len(change) < len(terms) else ""
            self.lines.append(f"x = x {step if step.startswith('- ') else '+ ' + step}" if step else f"x = {self.expression(terms)}")
            self.lines.append(f"h{group} = maximum(h{group}, x)")

    def holds(self, variables: int, comparisons: Iterable[Comparison]) -> Holds:
        """The function of the first `variables` factors that says for which plans the comparisons come out as they did."""
        tests = [f"(({self.expression(each.terms)}) {AS_IT_DID[each.relation, each.holds]} 0)" for each in strongest(comparisons)]
        return self._compiled(variables, " & ".join(["true", *tests]))

    def arrays(self, variables: int, plain: Iterable[Terms], groups: Sequence[Sequence[Terms]]) -> EvaluateArrays:
        """The function of the first `variables` factors that gives the plain figures and each group's highest."""
        sets = _by_groups(groups)
        for number, rows in enumerate(sets.values()):
            self.highest(number, rows)
        figures = [self.expression(terms) for terms in plain]
        for group in range(len(groups)):
            names = [f"h{number}" for number, among in enumerate(sets) if group in among]
            figures.append(reduce(lambda one, other: f"maximum({one}, {other})", names))
        return self._compiled(variables, f"({', '.join(figures)},)")

    def _compiled(self, variables: int, result: str) -> Callable[..., Any]:
        head = f"def evaluate({', '.join(f'f{number}' for number in range(variables))}):"
        names: dict[str, object] = {"true": np.ones(1, dtype=np.bool_), "maximum": np.maximum, "bits": _bits}
        evaluate: Callable[..., Any] = made_of((head, *self.lines, f"return {result}"), **names)
        return evaluate

    def rounded(self, kind: str, name: str, of: str, by: str) -> list[str]:
        """A rounded part, by its kind."""
        return ROUNDED[kind](name, of, by)


def strongest(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Without those that others imply: of polynomials that are above 0 and differ in their constant alone, the smallest."""
    kept: dict[Hashable, Comparison] = {}
    for each in comparisons:
        constant = each.terms.get((), 0)
        varying = frozenset((monomial, coefficient) for monomial, coefficient in each.terms.items() if monomial)
        key: Hashable = (each.holds, varying) if each.relation == ">" else (each.holds, varying, constant)
        known = kept.get(key)
        if known is None or (constant < known.terms.get((), 0)) == each.holds:
            kept[key] = each
    return list(kept.values())


def _by_groups(groups: Sequence[Sequence[Terms]]) -> dict[tuple[int, ...], list[Terms]]:
    """The rows by the groups that they stand in: one that stands in several is computed once."""
    among: dict[frozenset[tuple[Monomial, int]], tuple[Terms, list[int]]] = {}
    for number, rows in enumerate(groups):
        for terms in rows:
            among.setdefault(frozenset(terms.items()), (terms, []))[1].append(number)
    sets: dict[tuple[int, ...], list[Terms]] = {}
    for terms, numbers in among.values():
        sets.setdefault(tuple(dict.fromkeys(numbers)), []).append(terms)
    return sets


def _bits(numbers: Integers) -> Integers:
    """`int.bit_length` of numbers below 2^53."""
    return np.frexp(np.asarray(numbers, dtype=np.float64))[1].astype(np.int64)


def _block(name: str, of: str, _: str) -> list[str]:
    """`allocator.block_bytes`, written out; the roundings are to powers of two."""
    return [
        f"r = (({of}) + {ROUND - 1}) & -{ROUND}",
        f"s = -r & {SEGMENT_ROUND - 1}",
        f"{name} = r + s * ((r >= {OWN_SEGMENT_FROM}) & (s <= {MIB}))",
    ]


ROUNDED: dict[str, Callable[[str, str, str], list[str]]] = {
    **SCALAR_ROUNDED,
    "block": _block,
    "bits": lambda name, of, _: [f"{name} = bits({of})"],
}
