"""The factors that a traced walk's polynomials are made of, and the comparisons that they rest on (`forms.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from peakgate.memory.allocator import block_bytes

Monomial = tuple[int, ...]
"""Numbers of the factors, in order; () is the constant."""

Terms = Mapping[Monomial, int]
"""Coefficients by monomial, none of them 0."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A variable, or a rounded part of polynomials: a `block` of the allocator, a `floor` or a `ceil` of a quotient, a number of `bits`."""

    kind: str
    of: Terms = field(default_factory=dict)
    by: Terms = field(default_factory=dict)
    smallest: int | None = 0
    """A bound for all values of the variables; None without one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A polynomial is `>` or `==` 0, or is not."""

    relation: str
    terms: Terms
    holds: bool


@dataclass(slots=True)
class Trace:
    """What the polynomials of one or several walks share. `values` are those of the factors in the walk that was traced."""

    factors: list[Factor] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    comparisons: dict[object, Comparison] = field(default_factory=dict)
    known: dict[object, int] = field(default_factory=dict)
    products: dict[Monomial, int] = field(default_factory=dict)
    """What monomials came to."""
    bounds: dict[Monomial, int | None] = field(default_factory=dict)
    """What they are no smaller than."""
    orders: dict[tuple[Monomial, Monomial], bool] = field(default_factory=dict)
    """Whether one is never larger than another."""

    def variable(self, value: int, smallest: int = 1) -> int:
        """The number of a new variable, whose values are no smaller than `smallest`."""
        return self._new(Factor("variable", smallest=smallest), value)

    def rounded(self, kind: str, value: int, of: Terms, by: Terms, *, smallest: int | None) -> int:
        """The number of a rounded part; equal ones are one factor."""
        key = kind, frozenset(of.items()), frozenset(by.items())
        if key not in self.known:
            self.known[key] = self._new(Factor(kind, of, by, smallest), value)
        return self.known[key]

    def _new(self, factor: Factor, value: int) -> int:
        self.factors.append(factor)
        self.values.append(value)
        return len(self.factors) - 1

    def value(self, terms: Terms) -> int:
        """What a polynomial came to in the walk that was traced."""
        return value_of(terms, self.values, self.products)

    def positive(self, terms: Terms) -> bool:
        """Whether a polynomial is above 0 for all values of the variables, as far as signs tell."""
        return (self.smallest(terms) or 0) > 0

    def smallest(self, terms: Terms) -> int | None:
        """A bound from below; None where signs do not tell."""
        total = 0
        for monomial, coefficient in terms.items():
            if monomial:
                bound = self.bounds[monomial] if monomial in self.bounds else self._bound(monomial)
                if coefficient < 0 or bound is None:
                    return None
                total += coefficient * bound
            else:
                total += coefficient
        return total

    def _bound(self, monomial: Monomial) -> int | None:
        bounds = [self.factors[number].smallest for number in monomial]
        known = self.bounds[monomial] = None if None in bounds else prod(each or 0 for each in bounds)
        return known

    def elsewhere(self, variables: Callable[[int], int]) -> list[int]:
        """The factors' values where the variables, whose values here are given, have others."""
        values: list[int] = []
        products: dict[Monomial, int] = {}
        for factor, here in zip(self.factors, self.values, strict=True):
            if factor.kind == "variable":
                values.append(variables(here))
            else:
                of, by = value_of(factor.of, values, products), value_of(factor.by, values, products)
                values.append(ROUNDED[factor.kind](of, by))
        return values

    def holds(self, relation: str, terms: Terms) -> bool:
        """Whether a polynomial stands in a relation to 0: always, never, or as the walk that was traced found it."""
        if self.positive(terms):
            return relation == ">"
        least = self.smallest({monomial: -each for monomial, each in terms.items()})
        if least is not None and (least > 0 or (least == 0 and relation == ">")):
            return False
        value = self.value(terms)
        found = value > 0 if relation == ">" else value == 0
        self.comparisons[relation, frozenset(terms.items())] = Comparison(relation, terms, found)
        return found


def value_of(terms: Terms, values: Sequence[int], products: dict[Monomial, int]) -> int:
    """A polynomial's value by those of the factors; `products` are monomials that are known."""
    total = 0
    for monomial, coefficient in terms.items():
        product = products.get(monomial)
        if product is None:
            product = products[monomial] = prod(values[number] for number in monomial)
        total += coefficient * product
    return total


ROUNDED: dict[str, Callable[[int, int], int]] = {
    "block": lambda of, _: block_bytes(of),
    "floor": lambda of, by: of // (by or 1),
    "ceil": lambda of, by: -(-of // (by or 1)),
    "bits": lambda of, _: of.bit_length(),
    "power": lambda of, _: 1 << max(0, of),
}
"""What a rounded part comes to, by its kind; away from the walk that was traced a divisor may be 0."""
