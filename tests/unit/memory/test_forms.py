"""Integers that remember their polynomial."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.memory.allocator import block_bytes
from peakgate.memory.forms import Form, UntraceableError, block_of, terms_of
from peakgate.memory.program import Program
from peakgate.memory.trace import Trace

Compute = Callable[[int, int], int]

COMPUTED: dict[str, Compute] = {
    "product": lambda b, s: 3 * b * s * s + 7,
    "difference": lambda b, s: 9 * b * s - b - 4,
    "rounded up": lambda b, s: -(-(b * s) // 7),
    "divided by a variable": lambda b, s: b * s * 6 // b,
    "partly divided": lambda b, s: (8 * b * s + 5 * s) // 4,
    "remainder": lambda b, s: b * s % 32,
    "number over a size": lambda b, s: 4096 // (b + s),
    "power of two": lambda b, s: 1 << (b * s - 1).bit_length(),
    "blocks": lambda b, s: block_of(4096 * b * s) - block_of(2 * s),
    "larger one": lambda b, s: max(b * 100, s),
}
SIZES = st.integers(1, 1 << 14)


def evaluated(compute: Compute, traced: tuple[int, int], asked: tuple[int, int]) -> int | None:
    """Traced with one pair of sizes, evaluated for another."""
    trace = Trace()
    b, s = (Form(trace, {(trace.variable(size),): 1}) for size in traced)
    found = Program(trace).function(2, [terms_of(compute(b, s))], (), trace.comparisons.values())(*asked)
    return None if found is None else found[0][0]


@pytest.mark.parametrize("name", COMPUTED)
@given(traced=st.tuples(SIZES, SIZES), asked=st.tuples(SIZES, SIZES))
def test_a_polynomial_gives_what_was_computed(name: str, traced: tuple[int, int], asked: tuple[int, int]) -> None:
    """For the sizes that it was traced with, and for all others for which every comparison comes out alike."""
    compute = COMPUTED[name]
    assert evaluated(compute, traced, traced) == compute(*traced)
    assert evaluated(compute, traced, asked) in (compute(*asked), None if name == "larger one" else compute(*asked))


def test_a_block_is_the_allocators() -> None:
    """Plain numbers are rounded as the allocator does."""
    assert [block_of(size) for size in (0, 1, 20 << 20)] == [block_bytes(size) for size in (0, 1, 20 << 20)]


def test_signs_decide_without_a_comparison() -> None:
    """What holds for all positive sizes is not written down; what does not is."""
    trace = Trace()
    b = Form(trace, {(trace.variable(3),): 1})
    assert b > 0
    assert b * b + 1 != 0
    assert not trace.comparisons
    assert not b > 5
    assert len(trace.comparisons) == 1


@pytest.mark.parametrize("use", [hash, float, int, "{}".format, lambda form: form * 0.5, lambda form: form / 2, lambda form: form & 1])
def test_what_no_polynomial_says_is_refused(use: Callable[[Form], object]) -> None:
    """A size that is printed, looked up or multiplied by a share would be lost: better not compiled than wrong."""
    trace = Trace()
    with pytest.raises(UntraceableError):
        use(Form(trace, {(trace.variable(3),): 1}))
