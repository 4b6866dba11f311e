"""Which of some polynomials can be the largest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from peakgate.memory.dominance import largest
from peakgate.memory.forms import Form, block_of, terms_of
from peakgate.memory.trace import Terms, Trace, value_of

SIZES = st.integers(1, 1 << 12)
COUNTS = st.lists(st.tuples(*[st.integers(-2, 4)] * 4), min_size=1, max_size=12)


def rows_of(trace: Trace, counts: list[tuple[int, ...]]) -> list[Terms]:
    """Sums of a small block, a large one, as many as there are layers, and a product."""
    batch, layers = (Form(trace, {(trace.variable(size),): 1}) for size in (3, 5))
    parts = [block_of(2 * batch), block_of(4096 * batch), layers * block_of(2 * batch), batch * layers]
    return [terms_of(sum((count * part for count, part in zip(each, parts, strict=True)), 0)) for each in counts]


@given(counts=COUNTS, sizes=st.tuples(SIZES, SIZES))
def test_a_row_that_is_left_out_is_never_the_only_highest(counts: list[tuple[int, ...]], sizes: tuple[int, int]) -> None:
    """At any sizes one of the rows that are kept is as high as the highest of all."""
    trace = Trace()
    rows = rows_of(trace, counts)
    values = trace.elsewhere(lambda here: sizes[0] if here == 3 else sizes[1])
    heights = [value_of(terms, values, {}) for terms in rows]
    assert max(heights) == max(heights[place] for place in largest(trace, rows))


def test_a_product_with_more_factors_covers_one_with_fewer() -> None:
    """There is at least one layer, and a larger request has no smaller block."""
    trace = Trace()
    assert largest(trace, rows_of(trace, [(1, 0, 0, 0), (0, 0, 1, 0)])) == [1]
    assert largest(trace, rows_of(trace, [(1, 0, 0, 0), (0, 1, 0, 0)])) == [1]


def test_of_equal_rows_the_first_is_kept() -> None:
    """The moment that comes first is the one that an answer names."""
    trace = Trace()
    assert largest(trace, rows_of(trace, [(1, 2, 0, 0), (1, 2, 0, 0), (0, 0, 0, 1)])) == [0, 2]
