"""Which versions of the calibration are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from peakgate.server.store.records import KEPT_KINDS
from peakgate.server.store.thinning import NEWEST_KEPT, Gone, Version, thinned


def a_line(rows: int, **kinds: str) -> list[Version]:
    """Versions 1 to `rows`, each made from the one before, the last one in use; `v3="daily"` gives the third a kind."""
    return [
        Version(
            sequence=number,
            parent=number - 1,
            state="active" if number == rows else "retired",
            kind=kinds.get(f"v{number}", ""),
            created_us=number,
        )
        for number in range(1, rows + 1)
    ]


def test_the_newest_stay() -> None:
    """And a line that is no longer than they are is left alone."""
    assert thinned(a_line(NEWEST_KEPT), kept_from_us=0) == []
    assert [each.sequence for each in thinned(a_line(NEWEST_KEPT + 2), kept_from_us=0)] == [2, 1]


def test_the_gap_is_closed() -> None:
    """What goes is said of the one that was made from it, which then was made from the one before."""
    assert thinned(a_line(5, v2="alarm"), kept_from_us=0, newest_kept=2) == [Gone(3, 4, 2), Gone(1, 2, 0)]
    assert thinned(a_line(4), kept_from_us=0, newest_kept=1) == [Gone(3, 4, 2), Gone(2, 4, 1), Gone(1, 4, 0)]


def test_what_is_kept_for_a_reason_goes_when_it_is_old() -> None:
    """Each kind, from the moment on to which history goes back."""
    versions = a_line(6, v1="daily", v2="alarm", v3="promoted", v4="daily")
    assert [each.sequence for each in thinned(versions, kept_from_us=3, newest_kept=1)] == [5, 2, 1]


def test_what_is_in_use_stays() -> None:
    """A version that was gone back to, and a shadow, wherever they are."""
    first, shadow, third, last = a_line(4)
    versions = [
        Version(sequence=1, parent=0, state="active", kind="", created_us=1),
        Version(sequence=2, parent=1, state="shadow", kind="", created_us=2),
        third,
        Version(sequence=4, parent=3, state="retired", kind="", created_us=4),
    ]
    assert (first.sequence, shadow.sequence, last.sequence) == (1, 2, 4)
    assert thinned(versions, kept_from_us=0, newest_kept=1) == [Gone(3, 4, 2)]


def test_a_version_from_which_two_lines_part_stays_while_both_do() -> None:
    """Its observations are of both. When one line has gone it is like any other."""
    retired = {"state": "retired", "kind": "", "created_us": 1}
    root, fork, left = (Version(sequence=number, parent=number - 1, **retired) for number in (1, 2, 3))  # type: ignore[arg-type]
    right = Version(sequence=4, parent=2, state="active", kind="", created_us=1)
    assert thinned([root, fork, left, right], kept_from_us=0, newest_kept=2) == [Gone(1, 2, 0)]
    assert thinned([root, fork, left, right], kept_from_us=0, newest_kept=1) == [Gone(3, 0, 2), Gone(2, 4, 1), Gone(1, 4, 0)]


@st.composite
def trees(draw: st.DrawFn) -> list[Version]:
    """Versions made from any earlier one, of any kind and age, one of them in use."""
    rows = draw(st.integers(1, 30))
    used = draw(st.integers(1, rows))
    return [
        Version(
            sequence=number,
            parent=draw(st.integers(0, number - 1)),
            state="active" if number == used else "retired",
            kind=draw(st.sampled_from(("", *KEPT_KINDS))),
            created_us=draw(st.integers(0, 9)),
        )
        for number in range(1, rows + 1)
    ]


@given(trees(), st.integers(1, 10), st.integers(0, 9))
def test_lines_stay_what_they_were(versions: list[Version], newest_kept: int, kept_from_us: int) -> None:
    """Each kept version has the kept ones of its line before it, and what was taken in on its line, no more and no less."""
    gone = thinned(versions, kept_from_us=kept_from_us, newest_kept=newest_kept)
    parents = {each.sequence: each.parent for each in versions}
    owner = {each.sequence: each.sequence for each in versions}  # of the observations of each
    want = {each: line_of(parents, each) for each in parents}
    for each in gone:
        assert parents.pop(each.sequence) == each.parent
        if each.child:
            assert parents[each.child] == each.sequence
            parents[each.child] = each.parent
            owner = {taken: each.child if whose == each.sequence else whose for taken, whose in owner.items()}
    for kept in parents:
        line = line_of(parents, kept)
        assert line == [each for each in want[kept] if each in parents]
        assert {taken for taken, whose in owner.items() if whose in line} == set(want[kept])


def line_of(parents: dict[int, int], sequence: int) -> list[int]:
    """A version and those before it, newest first."""
    line = [sequence]
    while parents.get(line[-1], 0):
        line.append(parents[line[-1]])
    return line
