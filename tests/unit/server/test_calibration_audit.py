"""Every figure of an audit, against ones that were computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from peakgate.server.calibration_audit import (
    BELOW_PROMISE,
    DISTRUSTED,
    TOO_FEW_NEEDS,
    TRUSTED,
    UNKNOWN,
    WAS_BELOW_PROMISE,
    Audit,
    Coverage,
    Seen,
    Tally,
    chance_of,
    fewest_needs,
    stride_of,
    verdict,
    wilson,
)
from peakgate.server.clock import DAY_US

SEEN = Seen(
    group="g",
    is_rejected=False,
    is_out_of_memory=False,
    promised=0.95,
    required_bytes=50,
    bound_bytes=60,
    usable_bytes=80,
    need_bytes=52,
    lower_bytes=52,
    upper_bytes=52,
    finished_us=0,
    kind="exact",
    is_told=False,
    is_greedy=False,
)
"""A job that was predicted to need 50 of 80, bounded at 60, and needed 52."""

RAN_OUT = replace(SEEN, kind="lower", is_out_of_memory=True, upper_bytes=None, need_bytes=80, lower_bytes=80)
CUT_SHORT = replace(SEEN, kind="lower", upper_bytes=None, need_bytes=70, lower_bytes=70)


def tallied(*rows: Seen) -> Tally:
    """The tally of these."""
    tally = Tally()
    for row in rows:
        tally.take(row)
    return tally


def covered(needs: int, misses: int, promised: float = 0.95) -> Coverage:
    """So many, all promised the same."""
    return Coverage(needs=needs, misses=misses, promised_sum=promised * needs, promised_rows=needs)


@pytest.mark.parametrize(
    ("hits", "total", "want"),
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (1, 29, (0.0061, 0.1718)), (20, 20, (0.8389, 1.0))],
)
def test_the_interval_is_wilsons(hits: int, total: int, want: tuple[float, float]) -> None:
    """The published examples of the score interval (Newcombe, Statistics in Medicine 17, 1998, table I), and one turned round."""
    assert wilson(hits, total) == pytest.approx(want, abs=5e-5)


def test_without_rows_the_interval_is_everything() -> None:
    """Nothing is known."""
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("misses", "needs", "share", "want"),
    [
        (2, 3, 0.5, 4 / 8),
        (2, 10, 0.1, 1 - 0.9**10 - 10 * 0.1 * 0.9**9),
        (3, 3, 0.2, 0.008),
        (1, 20, 0.05, 1.0),
        (0, 0, 0.05, 1.0),
        (1, 5, 0.0, 0.0),
    ],
)
def test_the_chance_of_so_many_misses_is_binomial(misses: int, needs: int, share: float, want: float) -> None:
    """By hand; no more than expected is no sign of anything."""
    assert chance_of(misses, needs, share) == pytest.approx(want, rel=1e-9)


def test_the_chance_holds_for_many_needs() -> None:
    """Five standard deviations above 5 % of 100,000: the normal tail is 2.9e-7, the binomial one a little more."""
    misses = 5_000 + math.ceil(5 * math.sqrt(100_000 * 0.05 * 0.95))
    assert 2.5e-7 < chance_of(misses, 100_000, 0.05) < 6e-7


def test_so_many_needs_must_all_stay_within_their_bound() -> None:
    """0.95 ** 59 is the first power below 5 %, 0.99 ** 299 likewise."""
    assert (fewest_needs(0.95), fewest_needs(0.99)) == (59, 299)
    assert 0.95**58 > 0.05 > 0.95**59
    assert 0.99**298 > 0.05 > 0.99**299


def test_coverage_counts_needs_whose_side_is_known() -> None:
    """Three exact needs of which one is above, an out-of-memory above; one that was cut short says neither, however high it was."""
    tally = tallied(SEEN, SEEN, replace(SEEN, need_bytes=61), RAN_OUT, CUT_SHORT)
    assert (tally.exact_rows, tally.coverage.needs, tally.coverage.misses, tally.out_of_memory_misses) == (3, 4, 2, 1)
    assert tally.coverage.found == 0.5
    assert tally.coverage.interval() == pytest.approx(wilson(2, 4))


def test_a_need_at_the_bound_is_within_it() -> None:
    """At or under; an out-of-memory at the bound needed more than it."""
    assert not replace(SEEN, need_bytes=60).is_miss
    assert replace(RAN_OUT, need_bytes=60).is_miss
    assert replace(RAN_OUT, need_bytes=59).is_decided is False


def test_an_upper_end_counts_as_known() -> None:
    """The allocator gave its cache back and went on."""
    assert tallied(replace(SEEN, kind="upper")).exact_rows == 1


def test_what_was_promised_is_the_mean_of_what_was_stated() -> None:
    """Of the needs that count; an answer that cannot be read states nothing."""
    tally = tallied(SEEN, replace(SEEN, promised=0.99), replace(SEEN, promised=None), replace(CUT_SHORT, promised=0.5))
    assert tally.coverage.promised == pytest.approx(0.97)
    assert tallied(replace(SEEN, promised=None)).coverage.promised is None


def test_waste_is_bound_minus_need_of_exact_rows() -> None:
    """(60 − 52 + 60 − 64) / 2; an out-of-memory has no need to subtract."""
    assert tallied(SEEN, replace(SEEN, need_bytes=64), RAN_OUT).mean_waste_bytes == pytest.approx(2.0)
    assert tallied(RAN_OUT).mean_waste_bytes is None


def test_rejections_are_held_against_the_card() -> None:
    """One within the card, one at it, one above it, an out-of-memory of the whole card, and one of which it is not known."""
    rejected = replace(SEEN, is_rejected=True, bound_bytes=90)
    rows = (
        rejected,
        replace(rejected, need_bytes=80),
        replace(rejected, need_bytes=81),
        replace(RAN_OUT, is_rejected=True, bound_bytes=90),
        replace(CUT_SHORT, is_rejected=True, bound_bytes=90),
    )
    tally = tallied(SEEN, *rows)
    assert (tally.rejected_attempts, tally.false_rejections, tally.right_rejections) == (5, 2, 2)


def test_without_a_card_no_rejection_is_false() -> None:
    """Nobody knows what it was held against."""
    tally = tallied(replace(SEEN, is_rejected=True, usable_bytes=0))
    assert (tally.rejected_attempts, tally.false_rejections, tally.right_rejections) == (1, 0, 0)


def test_labels_are_counted_of_exact_rows() -> None:
    """Two told, one of them by a greedy allocator; a lower end's figures say nothing of needs."""
    told = replace(SEEN, is_told=True)
    tally = tallied(SEEN, told, replace(told, is_greedy=True), replace(RAN_OUT, is_told=True))
    assert (tally.exact_rows, tally.told_rows, tally.greedy_rows) == (3, 2, 1)


def test_groups_and_days_are_tallied_apart() -> None:
    """Two groups; days 0, 3 and 10, whose weeks have one, two and one of the days with needs."""
    audit = Audit()
    for number, (day, group, need) in enumerate([(0, "a", 52), (3, "b", 61), (10, "a", 52)]):
        audit.take(replace(SEEN, group=group, need_bytes=need, finished_us=day * DAY_US + number))
    audit.take(replace(CUT_SHORT, finished_us=5 * DAY_US))
    assert {name: tally.coverage.misses for name, tally in audit.groups.items()} == {"a": 0, "b": 1, "g": 0}
    days = audit.by_day()
    assert [(day.number, day.needs, day.misses, day.week.needs, day.week.misses) for day in days] == [
        (0, 1, 0, 1, 0),
        (3, 1, 1, 2, 1),
        (10, 1, 0, 1, 0),
    ]


def test_a_week_is_seven_days() -> None:
    """The day itself and the six before it."""
    audit = Audit()
    for day in range(8):
        audit.take(replace(SEEN, finished_us=day * DAY_US))
    assert [day.week.needs for day in audit.by_day()] == [1, 2, 3, 4, 5, 6, 7, 7]


def test_points_are_evenly_chosen_and_in_the_order_of_their_ends() -> None:
    """5,000 rows that come in no order make 1,667 points at every third, never more than 2,000."""
    assert [stride_of(rows, most=2000) for rows in (0, 1, 2000, 2001, 4000, 5000)] == [1, 1, 1, 2, 2, 3]
    audit = Audit(stride=stride_of(5000, most=2000))
    for number in range(5000):
        audit.take(replace(SEEN, finished_us=5000 - number))
    points = audit.in_order()
    assert len(points) == 1667
    assert [point.finished_us for point in points] == sorted(point.finished_us for point in points)


def test_many_groups_are_held_to_a_stricter_limit() -> None:
    """Eight misses of 60 where three are expected: one chance in a hundred, which among 40 groups is none."""
    eight = covered(60, 8)
    assert 0.005 < chance_of(8, 60, 0.05) < 0.02
    assert eight.is_below()
    assert not eight.is_below(among=40)
    assert covered(60, 20).is_below(among=40)


@pytest.mark.parametrize(
    ("overall", "week", "reasons", "want"),
    [
        (covered(200, 10), covered(50, 2), (), (TRUSTED, ())),
        (covered(58, 0), covered(58, 0), (), (UNKNOWN, (TOO_FEW_NEEDS,))),
        (Coverage(), Coverage(), (), (UNKNOWN, (TOO_FEW_NEEDS,))),
        (covered(200, 30), covered(50, 12), (), (DISTRUSTED, (BELOW_PROMISE,))),
        (covered(200, 30), covered(50, 2), (), (TRUSTED, (WAS_BELOW_PROMISE,))),
        (covered(200, 10), covered(50, 12), (), (DISTRUSTED, (BELOW_PROMISE,))),
        (covered(200, 10), covered(50, 2), ("MISSES_TOO_OFTEN",), (DISTRUSTED, ("MISSES_TOO_OFTEN",))),
        (covered(20, 10), covered(20, 10), (), (DISTRUSTED, (BELOW_PROMISE,))),
    ],
)
def test_the_verdict(overall: Coverage, week: Coverage, reasons: tuple[str, ...], want: tuple[str, tuple[str, ...]]) -> None:
    """Trusted; too few; nothing; low and still so; low and recovered; low just now; wide bounds; few and half of them missed."""
    assert verdict(overall, week, reasons) == want
