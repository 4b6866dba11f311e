"""Polynomials as a Python function: the factors of a trace once each, the comparisons that it rests on, and what is asked for.

The function is written out and compiled by Python itself, as `dataclasses` and `collections.namedtuple` do: a sum of thirty products is
then one expression, and a shape costs a few dozen of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from peakgate.memory.allocator import MIB, OWN_SEGMENT_FROM, ROUND, SEGMENT_ROUND
from peakgate.memory.forms import added
from peakgate.memory.trace import Comparison, Monomial, Terms, Trace

Evaluate = Callable[..., tuple[tuple[int, ...], tuple[tuple[int, int], ...]] | None]
"""Of the variables: (plain figures, (highest, its place) of each group); None where a comparison comes out differently."""


@dataclass(slots=True)
class Program:
    """Writes one function. Factors are written when they are first used, and only then."""

    trace: Trace
    lines: list[str] = field(default_factory=list)
    products: dict[Monomial, str] = field(default_factory=dict)

    def expression(self, terms: Terms) -> str:
        """A polynomial; what it needs is written before."""
        parts = [self._term(monomial, coefficient) for monomial, coefficient in terms.items()]
        return " + ".join(parts) or "0"

    def _term(self, monomial: Monomial, coefficient: int) -> str:
        if not monomial:
            return str(coefficient)
        product = self._product(monomial)
        return product if coefficient == 1 else f"{coefficient}*{product}"

    def _product(self, monomial: Monomial) -> str:
        known = self.products.get(monomial)
        if known is None:
            if len(monomial) == 1:
                known = self._factor(monomial[0])
            else:
                head, last = self._product(monomial[:-1]), self._product(monomial[-1:])
                known = f"p{len(self.products)}"
                self.lines.append(f"{known} = {head}*{last}")
            self.products[monomial] = known
        return known

    def _factor(self, number: int) -> str:
        factor, name = self.trace.factors[number], f"f{number}"
        if factor.kind != "variable":
            self.lines += self.rounded(factor.kind, name, self.expression(factor.of), self.expression(factor.by))
        return name

    def rounded(self, kind: str, name: str, of: str, by: str) -> list[str]:
        """The lines of a rounded part."""
        return ROUNDED[kind](name, of, by)

    def compare(self, comparison: Comparison) -> None:
        """Gives up where a comparison does not come out as it did."""
        holds = f"{self.expression(comparison.terms)} {comparison.relation} 0"
        self.lines.append(f"if not ({holds}): return None" if comparison.holds else f"if {holds}: return None")

    def highest(self, group: int, rows: Sequence[Terms]) -> None:
        """The largest of some polynomials, the first of equal ones; each is written as what it differs by from the one before."""
        self.lines += [f"at{group} = 0", f"h{group} = x = {self.expression(rows[0])}"]
        for place, (before, terms) in enumerate(pairwise(rows), 1):
            change = added(terms, before, -1)
            step = self.expression(change) if len(change) < len(terms) else ""
            self.lines.append(f"x += {step}" if step else f"x = {self.expression(terms)}")
            self.lines.append(f"if x > h{group}: h{group}, at{group} = x, {place}")

    def function(
        self, variables: int, plain: Iterable[Terms], groups: Sequence[Sequence[Terms]], holding: Iterable[Comparison] = ()
    ) -> Evaluate:
        """The function of the first `variables` factors, which gives up unless the comparisons hold."""
        for comparison in holding:
            self.compare(comparison)
        for group, rows in enumerate(groups):
            self.highest(group, rows)
        figures = "".join(f"{self.expression(terms)}, " for terms in plain)
        highest = "".join(f"(h{group}, at{group}), " for group in range(len(groups)))
        head = f"def evaluate({', '.join(f'f{number}' for number in range(variables))}):"
        evaluate: Evaluate = made_of((head, *self.lines, f"return ({figures}), ({highest})"))
        return evaluate


def made_of(lines: Iterable[str], **known: object) -> Any:
    """The function `evaluate` that lines of Python define, with the names that they know."""
    names: dict[str, Any] = dict(known)
    exec(compile("\n ".join(lines), "<a compiled step>", "exec"), names)  # noqa: S102 - only numbers and names made here
    return names["evaluate"]


def _block(name: str, of: str, _: str) -> list[str]:
    """`allocator.block_bytes`, written out."""
    return [
        f"{name} = -(-({of}) // {ROUND}) * {ROUND}",
        f"if {name} >= {OWN_SEGMENT_FROM}:",
        f"  s = -(-{name} // {SEGMENT_ROUND}) * {SEGMENT_ROUND}",
        f"  if s - {name} <= {MIB}: {name} = s",
    ]


ROUNDED: dict[str, Callable[[str, str, str], list[str]]] = {
    "block": _block,
    "floor": lambda name, of, by: [f"{name} = ({of}) // ({by})"],
    "ceil": lambda name, of, by: [f"{name} = -(-({of}) // ({by}))"],
    "bits": lambda name, of, _: [f"{name} = ({of}).bit_length()"],
    "power": lambda name, of, _: [f"{name} = 1 << ({of})"],
}
"""How a rounded part is computed, by its kind."""
