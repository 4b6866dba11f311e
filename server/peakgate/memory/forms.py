"""Integers that remember how they came about: what a walk counts, as polynomials in the batch and the sequence.

A walk that is given a `Form` for its micro-batch and one for its sequence runs as it always does, and what it counts are polynomials in
these two and in rounded parts of such polynomials: blocks of the allocator, quotients. A comparison that does not come out the same for
all positive values is written down in the trace; the polynomials hold for every shape for which it comes out alike.

What is no polynomial is refused, but for one thing that Python hides: `range` and indices take an integer's value without asking it.
"""

from __future__ import annotations

from typing import NoReturn

from peakgate.memory.allocator import ROUND, block_bytes
from peakgate.memory.trace import Monomial, Terms, Trace


class UntraceableError(Exception):
    """A walk does something with a size that no polynomial says: prints it, looks it up in a table, multiplies it by a share."""


class Form(int):  # noqa: PLW1641 - a polynomial has no hash: see _no
    """An integer with the polynomial that gives it."""

    trace: Trace
    terms: Terms

    def __new__(cls, trace: Trace, terms: Terms, value: int | None = None) -> Form:
        """The polynomial with its value in the walk that is traced."""
        self = int.__new__(cls, trace.value(terms) if value is None else value)
        self.trace, self.terms = trace, terms
        return self

    def __add__(self, other: int) -> int:
        """The sum."""
        return made(self.trace, added(self.terms, terms_of(other)), int.__add__(self, other))

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        """The difference."""
        return made(self.trace, added(self.terms, terms_of(other), -1), int.__sub__(self, other))

    def __rsub__(self, other: int) -> int:
        """The difference from a number."""
        return made(self.trace, added(terms_of(other), self.terms, -1), int.__rsub__(self, other))

    def __neg__(self) -> int:
        """The opposite."""
        return self * -1

    def __mul__(self, other: int) -> int:
        """The product."""
        if type(other) is int:
            terms = {monomial: coefficient * other for monomial, coefficient in self.terms.items()} if other else {}
        else:
            terms = _product(self.terms, terms_of(other))
        return made(self.trace, terms, int.__mul__(self, other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        """What divides is divided; the rest is a rounded part."""
        by = terms_of(other)
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms.items():
            left = _without(monomial, coefficient, by)
            if left is None:
                rest[monomial] = coefficient
            else:
                whole[left] = coefficient // next(iter(by.values()))
        if not rest:
            return made(self.trace, whole, int.__floordiv__(self, other))
        return made(self.trace, whole, self.trace.value(whole)) + _quotient(self.trace, rest, by)

    def __rfloordiv__(self, other: int) -> int:
        """A number over the polynomial."""
        return _quotient(self.trace, terms_of(other), self.terms)

    def __mod__(self, other: int) -> int:
        """What is left over."""
        return self - self // other * other

    def __divmod__(self, other: int) -> tuple[int, int]:
        """The quotient and what is left over."""
        return self // other, self % other

    def bit_length(self) -> int:
        """How many bits it takes."""
        return Form(self.trace, {(self.trace.rounded("bits", int.bit_length(self), self.terms, {}, smallest=0),): 1})

    def __rlshift__(self, other: int) -> int:
        """A number times a power of two."""
        value = 1 << int.__int__(self)
        return other * Form(self.trace, {(self.trace.rounded("power", value, self.terms, {}, smallest=1),): 1})

    def __gt__(self, other: int) -> bool:
        """Whether it is larger."""
        return _holds(self.trace, ">", added(self.terms, terms_of(other), -1))

    def __lt__(self, other: int) -> bool:
        """Whether it is smaller."""
        return _holds(self.trace, ">", added(terms_of(other), self.terms, -1))

    def __ge__(self, other: int) -> bool:
        """Whether it is not smaller."""
        return not self < other

    def __le__(self, other: int) -> bool:
        """Whether it is not larger."""
        return not self > other

    def __eq__(self, other: object) -> bool:
        """Whether it is the same; what is no number is not."""
        return isinstance(other, int) and _holds(self.trace, "==", added(self.terms, terms_of(other), -1))

    def __ne__(self, other: object) -> bool:
        """Whether it differs."""
        return not self == other

    def __bool__(self) -> bool:
        """Whether it is not 0."""
        return self != 0

    def _no(self, *_: object) -> NoReturn:
        raise UntraceableError("a size is used as a plain number")

    __hash__ = __int__ = __index__ = __float__ = __round__ = __format__ = _no
    __truediv__ = __rtruediv__ = __pow__ = __and__ = __or__ = __lshift__ = __rshift__ = _no


def terms_of(value: int) -> Terms:
    """The polynomial of a number; raises UntraceableError for one that is not whole."""
    if isinstance(value, Form):
        return value.terms
    if not isinstance(value, int):
        raise UntraceableError(f"a size meets {value!r}")
    return {(): value} if value else {}


def made(trace: Trace, terms: Terms, value: int | None = None) -> int:
    """A polynomial, or the number that it always is; `value` in the walk that is traced, where it is known."""
    if not terms:
        return 0
    return terms[()] if len(terms) == 1 and () in terms else Form(trace, terms, value)


def _product(terms: Terms, more: Terms) -> dict[Monomial, int]:
    out: dict[Monomial, int] = {}
    for left, a in terms.items():
        for right, b in more.items():
            monomial = tuple(sorted(left + right)) if right and left else left + right
            out[monomial] = out.get(monomial, 0) + a * b
    return out if all(out.values()) else {monomial: coefficient for monomial, coefficient in out.items() if coefficient}


def added(terms: Terms, more: Terms, times: int = 1) -> dict[Monomial, int]:
    """`times` as much of the second is added to the first."""
    out = dict(terms)
    for monomial, coefficient in more.items():
        total = out.get(monomial, 0) + times * coefficient
        if total:
            out[monomial] = total
        else:
            out.pop(monomial, None)
    return out


def times_as_much(terms: Terms, times: int) -> Terms:
    """A polynomial, `times` over."""
    if isinstance(times, Form):
        return terms_of(Form(times.trace, terms) * times) if terms else terms
    return {monomial: coefficient * times for monomial, coefficient in terms.items()} if times else {}


def plain(size: int) -> int:
    """The number that a size has, for a loop or a list's length: what is traced then holds for that number alone."""
    if not isinstance(size, Form):
        return size
    number = size.trace.value(size.terms)
    if size != number:
        raise AssertionError("a size is its own value")
    return number


def block_of(nbytes: int) -> int:
    """The allocator's block of a request."""
    if not isinstance(nbytes, Form):
        return block_bytes(nbytes)
    trace = nbytes.trace
    smallest = ROUND if trace.positive(nbytes.terms) else 0
    return Form(trace, {(trace.rounded("block", block_bytes(int.__int__(nbytes)), nbytes.terms, {}, smallest=smallest),): 1})


def _holds(trace: Trace, relation: str, terms: Terms) -> bool:
    if not terms or (len(terms) == 1 and () in terms):
        value = terms.get((), 0)
        return value > 0 if relation == ">" else value == 0
    return trace.holds(relation, terms)


def _without(monomial: Monomial, coefficient: int, by: Terms) -> Monomial | None:
    """The monomial divided by a polynomial of one term, when it divides."""
    if len(by) != 1:
        return None
    ((divisor, over),) = by.items()
    if not divisor:
        return None if coefficient % over else monomial
    left = list(monomial)
    for number in divisor:
        if number not in left:
            return None
        left.remove(number)
    return None if coefficient % over else tuple(left)


def _quotient(trace: Trace, terms: Terms, by: Terms) -> int:
    """A rounded part; what is negative all over is rounded up, so that the part is never negative."""
    if not terms or (set(terms) == {()} and set(by) == {()}):
        return terms.get((), 0) // by.get((), 1)
    up = all(coefficient < 0 for coefficient in terms.values())
    sign, kind = (-1, "ceil") if up else (1, "floor")
    of = {monomial: sign * coefficient for monomial, coefficient in terms.items()}
    value = sign * (trace.value(terms) // trace.value(by))
    least = trace.smallest(of)
    signed = least is None or trace.smallest(by) is None
    smallest = int(up and (least or 0) > 0)  # a part of something, rounded up
    return sign * Form(trace, {(trace.rounded(kind, value, of, by, smallest=None if signed else smallest),): 1})
