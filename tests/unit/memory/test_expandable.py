"""Expandable segments: one growing segment a pool, pages, and a flush that takes pages out of the middle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory.test_allocator import SIZES, Events, steps_of

from peakgate.memory.allocator import OutOfMemoryError
from peakgate.memory.expandable import ExpandableAllocator
from peakgate.memory.replay import Script, play, smallest_cap

MIB = 1 << 20


def reserved(resident: list[int], step: Events = [], cap: int | None = None) -> int:  # noqa: B006 - never changed
    """Highest reserved bytes of one step."""
    return play(Script(resident=resident, steps=[step], expandable=True), cap).reserved_bytes


@pytest.mark.parametrize(
    ("nbytes", "want"), [(1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (20 * MIB, 20 * MIB), (21 * MIB, 40 * MIB)]
)
def test_a_segment_grows_in_pages(nbytes: int, want: int) -> None:
    """2 MiB for requests up to 1 MiB, else 20 MiB."""
    assert reserved([nbytes]) == want


def test_requests_lie_side_by_side() -> None:
    """Nothing is lost between them: three of 12 MiB take two pages."""
    assert reserved([12 * MIB] * 3) == 40 * MIB


def test_holes_join_and_serve_a_larger_request() -> None:
    """The gap of two freed neighbours is one block."""
    assert reserved([], [(1, 30 * MIB), (2, 30 * MIB), (3, 20 * MIB), (1, -1), (2, -1), (4, 60 * MIB)]) == 80 * MIB


def test_the_end_that_can_grow_is_used_last() -> None:
    """A request takes the inner hole although the free end is the tighter fit."""
    allocator = ExpandableAllocator()
    inner, between, end = (allocator.malloc(size * MIB) for size in (30, 18, 12))
    allocator.free(inner)
    allocator.free(end)
    assert allocator.malloc(12 * MIB).address < between.address


def test_the_free_end_grows_by_what_is_missing() -> None:
    """20 MiB free at the end and 20 new ones serve 40."""
    assert reserved([], [(1, 20 * MIB), (2, 20 * MIB), (2, -1), (3, 40 * MIB)]) == 60 * MIB


def test_a_flush_takes_pages_out_of_the_middle() -> None:
    """40 of 60 MiB are free in the middle; under a cap their pages go, and the request gets new addresses."""
    step: Events = [(1, 20 * MIB), (2, 40 * MIB), (3, 20 * MIB), (2, -1), (4, 60 * MIB)]
    assert reserved([], step) == 140 * MIB
    assert reserved([], step, 100 * MIB) == 100 * MIB
    with pytest.raises(OutOfMemoryError):
        reserved([], step, 80 * MIB)


def test_addresses_without_memory_serve_again() -> None:
    """What a flush took from the middle is mapped again for a request that fits there."""
    allocator = ExpandableAllocator(100 * MIB)
    first, middle, last = (allocator.malloc(size * MIB) for size in (20, 40, 20))
    allocator.free(middle)
    allocator.flush()
    assert allocator.reserved == 40 * MIB
    assert first.address < allocator.malloc(40 * MIB).address < last.address
    assert allocator.reserved == 80 * MIB


def test_streams_share_nothing() -> None:
    """A free block of one stream is no place for another's request, with native segments and with expandable ones."""
    step: Events = [(1, 40 * MIB), (1, -1), (2, 40 * MIB)]
    for expandable in (True, False):
        assert play(Script(resident=[], steps=[step], expandable=expandable)).reserved_bytes == 40 * MIB
        assert play(Script(resident=[], steps=[step], streams={2: "side"}, expandable=expandable)).reserved_bytes == 80 * MIB


def test_late_states_come_at_the_end_of_the_first_step() -> None:
    """They take what the step has freed by then, beside what it leaves until the next one begins."""
    step: Events = [(1, 100 * MIB), (2, 20 * MIB), (1, -1)]
    assert play(Script(resident=[], steps=[step], late=[60 * MIB], expandable=True)).reserved_bytes == 120 * MIB
    assert play(Script(resident=[], steps=[step] * 2, late=[60 * MIB], expandable=True)).reserved_bytes == 180 * MIB


@given(SIZES, steps_of())
def test_allocated_never_passes_reserved(resident: list[int], step: Events) -> None:
    """Blocks lie in pages, and pages hold little more than the blocks of one stretch."""
    seen = play(Script(resident=resident, steps=[step] * 2, expandable=True))
    assert sum(resident) <= seen.allocated_bytes <= seen.reserved_bytes


@given(SIZES, steps_of(), st.booleans())
def test_a_script_completes_under_its_smallest_cap(resident: list[int], step: Events, streams: bool) -> None:
    """Flushes keep every block, so the steps end under the cap that the search finds."""
    script = Script(resident=resident, steps=[step] * 2, streams={2: "side"} if streams else {}, expandable=True)
    seen = play(script)
    cap = smallest_cap(script, seen)
    assert seen.allocated_bytes <= cap <= seen.reserved_bytes
    assert play(script, cap).reserved_bytes <= cap
