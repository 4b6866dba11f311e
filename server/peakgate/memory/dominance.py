"""Which of some polynomials can be the largest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from peakgate.memory.forms import added
from peakgate.memory.trace import Monomial, Terms, Trace, value_of


def is_below(terms: Terms, other: Terms) -> bool:
    """Whether a polynomial is at most another one, coefficient by coefficient; factors are never negative."""
    get = other.get
    for monomial, coefficient in terms.items():
        if coefficient > get(monomial, 0):
            return False
    return all(coefficient >= 0 or monomial in terms for monomial, coefficient in other.items())


def grows(terms: Terms) -> bool:
    """Whether it is never negative, as far as signs tell."""
    return all(coefficient >= 0 for coefficient in terms.values())


def shrinks(terms: Terms) -> bool:
    """Whether it is never positive, as far as signs tell."""
    return all(coefficient <= 0 for coefficient in terms.values())


POINTS: tuple[Callable[[int], int], ...] = (lambda here: here, lambda here: 1 + here // 7, lambda here: 5 + 97 * here)
"""Other values of the variables: a row that is above another one at any of them is not covered by it."""


def largest(trace: Trace, rows: Sequence[Terms]) -> list[int]:
    """The places of the rows that no other row is above of, whatever the sizes; of equal ones the first.

    Small requests have equal blocks: a row that is left out may be as high as the one that covers it.
    """
    heights = _heights(trace, rows)
    kept: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: (-heights[place][0], place)):
        low, middle, high = heights[place]
        for other in kept:
            above = heights[other]
            if low <= above[0] and middle <= above[1] and high <= above[2] and _covered(trace, rows[place], rows[other]):
                break
        else:
            kept.append(place)
    return sorted(kept)


def _heights(trace: Trace, rows: Sequence[Terms]) -> list[tuple[int, ...]]:
    """The rows' values at the points."""
    known: list[dict[Monomial, int]] = [{} for _ in POINTS]
    at = [(trace.elsewhere(variables), products) for variables, products in zip(POINTS, known, strict=True)]
    return [tuple(value_of(terms, values, products) for values, products in at) for terms in rows]


def _covered(trace: Trace, terms: Terms, other: Terms) -> bool:
    """Whether what a row has more of than another one is made up for by larger things that the other one has more of."""
    more = added(other, terms, -1)
    missing = [(monomial, -coefficient) for monomial, coefficient in more.items() if coefficient < 0]
    if not missing:
        return True
    spare = {monomial: coefficient for monomial, coefficient in more.items() if coefficient > 0}
    return all(_made_up(trace, monomial, count, spare) for monomial, count in missing)


def _made_up(trace: Trace, monomial: Monomial, count: int, spare: dict[Monomial, int]) -> bool:
    """Takes `count` larger things out of what is spare."""
    for larger, left in spare.items():
        smaller = trace.orders.get((monomial, larger))
        if smaller is None:
            smaller = trace.orders[monomial, larger] = _is_smaller(trace, monomial, larger)
        if smaller and left:
            taken = min(count, left)
            count -= taken
            spare[larger] = left - taken
            if not count:
                return True
    return False


def _is_smaller(trace: Trace, monomial: Monomial, other: Monomial) -> bool:
    """Whether a product is never larger than another one: that has more factors, or is the block of a larger request."""
    left = list(other)
    for number in monomial:
        if number not in left:
            break
        left.remove(number)
    else:
        return all((trace.factors[number].smallest or 0) > 0 for number in left)
    request, larger = _request(trace, monomial), _request(trace, other)
    return request is not None and larger is not None and is_below(request, larger)


def _request(trace: Trace, monomial: Monomial) -> Terms | None:
    """What a block was asked for; None of what is no block."""
    factor = trace.factors[monomial[0]] if len(monomial) == 1 else None
    return factor.of if factor is not None and factor.kind == "block" else None
