"""The caching allocator: blocks for requests, segments, splitting and joining, a cap with flush and retry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.memory.allocator import CachingAllocator, OutOfMemoryError, block_bytes
from peakgate.memory.replay import Script, play, replay, smallest_cap

KIB, MIB = 1 << 10, 1 << 20

Events = list[tuple[int, int]]


@pytest.mark.parametrize(
    ("nbytes", "want"),
    [
        (0, 0),
        (1, 512),
        (512, 512),
        (513, 1024),
        (MIB, MIB),
        (10 * MIB - 512, 10 * MIB - 512),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 10 * MIB + 512),  # 12 MiB segment, more than 1 MiB left over: split
        (11 * MIB - 512, 11 * MIB - 512),
        (11 * MIB, 12 * MIB),  # exactly 1 MiB left over: not split
        (12 * MIB - 1, 12 * MIB),
    ],
)
def test_a_block_is_a_rounded_request_or_a_whole_segment(nbytes: int, want: int) -> None:
    """512 B; from 10 MiB on a segment of its own, which is given whole when at most 1 MiB would be left over."""
    assert block_bytes(nbytes) == want


@given(st.integers(1, 200 * MIB), st.integers(0, MIB))
def test_a_larger_request_never_takes_a_smaller_block(nbytes: int, more: int) -> None:
    """And a block is never smaller than its request, nor more than 1 MiB larger."""
    assert nbytes <= block_bytes(nbytes) <= nbytes + MIB
    assert block_bytes(nbytes) <= block_bytes(nbytes + more)


@pytest.mark.parametrize(
    ("nbytes", "want_reserved"),
    [(1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB), (15 * MIB, 16 * MIB)],
)
def test_a_request_opens_the_segment_of_its_size(nbytes: int, want_reserved: int) -> None:
    """2 MiB for small ones, 20 MiB below 10 MiB, else its own size in steps of 2 MiB."""
    assert replay([nbytes], []).reserved_bytes == want_reserved


def test_what_is_left_of_a_segment_serves_the_next_request() -> None:
    """Two requests of 8 MiB share one segment of 20; the third opens another."""
    assert [replay([8 * MIB] * n, []).reserved_bytes for n in (1, 2, 3)] == [20 * MIB, 20 * MIB, 40 * MIB]


def test_the_smallest_block_that_fits_is_taken() -> None:
    """Best fit: 12 MiB goes into the hole of 12, so that 30 still finds its own."""
    steps: Events = [(1, 30 * MIB), (2, 12 * MIB), (1, -1), (2, -1), (3, 12 * MIB), (4, 30 * MIB)]
    assert replay([], [steps]).reserved_bytes == 42 * MIB


def test_a_large_hole_is_split_and_joined_again() -> None:
    """60 MiB serve as 20 + 40, and as 60 once both are free, in either order of freeing."""
    for order in ((2, 3), (3, 2)):
        steps: Events = [(1, 60 * MIB), (1, -1), (2, 20 * MIB), (3, 40 * MIB), *((n, -1) for n in order), (4, 60 * MIB)]
        assert replay([], [steps]).reserved_bytes == 60 * MIB


def test_a_hole_between_two_blocks_joins_both_sides() -> None:
    """Three parts of one segment, the middle one freed last, are one block again."""
    steps: Events = [(1, 60 * MIB), (1, -1), *((n, 20 * MIB) for n in (2, 3, 4)), (2, -1), (4, -1), (3, -1), (5, 60 * MIB)]
    assert replay([], [steps]).reserved_bytes == 60 * MIB


def test_a_block_that_a_neighbour_splits_is_not_joined_over_it() -> None:
    """The middle part is in use: the ends do not make one block."""
    steps: Events = [(1, 60 * MIB), (1, -1), *((n, 20 * MIB) for n in (2, 3, 4)), (2, -1), (4, -1), (5, 40 * MIB)]
    assert replay([], [steps]).reserved_bytes == 100 * MIB


def test_small_and_large_requests_do_not_share_segments() -> None:
    """Two pools: what is left of a large segment is no place for a small tensor."""
    assert replay([2 * MIB, 512], []).reserved_bytes == 22 * MIB


def test_blocks_are_counted_as_allocated() -> None:
    """An unsplit block counts whole, as `max_memory_allocated` does."""
    assert replay([11 * MIB, 100], []).allocated_bytes == 12 * MIB + 512


def test_a_flush_saves_a_request_under_a_cap() -> None:
    """30 MiB are cached and free; 40 do not fit beside them, so the cache goes back to the driver first."""
    steps: Events = [(1, 30 * MIB), (1, -1), (2, 40 * MIB)]
    assert replay([], [steps]).reserved_bytes == 70 * MIB
    assert replay([], [steps], 40 * MIB).reserved_bytes == 40 * MIB


def test_only_wholly_free_segments_are_flushed() -> None:
    """A segment with one block in use stays, and its free part with it."""
    allocator = CachingAllocator(60 * MIB)
    allocator.free(allocator.malloc(60 * MIB))
    kept = allocator.malloc(20 * MIB)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(60 * MIB)
    assert (allocator.flushes, allocator.reserved, allocator.allocated) == (1, 60 * MIB, 20 * MIB)
    allocator.free(kept)
    allocator.malloc(59 * MIB)
    assert allocator.reserved == 60 * MIB


def test_a_step_that_passes_its_cap_is_out_of_memory() -> None:
    """Nothing is left to flush."""
    with pytest.raises(OutOfMemoryError):
        replay([30 * MIB], [[(1, 40 * MIB)]], 60 * MIB)


def test_what_a_step_leaves_is_freed_before_the_next() -> None:
    """A second equal step needs nothing more."""
    step: Events = [(1, 30 * MIB), (2, 50 * MIB), (1, -1)]
    assert replay([], [step]) == replay([], [step, step])


def test_an_unknown_free_is_ignored() -> None:
    """The free of a tensor from before the recorded step."""
    assert replay([], [[(7, -512), (1, 512)]]).allocated_bytes == 512


SIZES = st.lists(st.integers(1, 64 * MIB), min_size=1, max_size=12)


@st.composite
def steps_of(draw: st.DrawFn) -> Events:
    """Allocations, each perhaps freed later."""
    events: Events = []
    live: list[int] = []
    for number, size in enumerate(draw(SIZES), start=1):
        events.append((number, size))
        live.append(number)
        for _ in range(draw(st.integers(0, 2))):
            if live:
                events.append((live.pop(draw(st.integers(0, len(live) - 1))), -1))
    return events


@given(SIZES, steps_of())
def test_the_smallest_cap_is_enough_and_lies_between_allocated_and_reserved(resident: list[int], step: Events) -> None:
    """The step completes under it."""
    seen = replay(resident, [step, step])
    cap = smallest_cap(Script(resident=resident, steps=[step, step]), seen)
    assert seen.allocated_bytes <= cap <= seen.reserved_bytes
    assert replay(resident, [step, step], cap).reserved_bytes <= cap


@given(SIZES, steps_of(), st.integers(17 * MIB, 64 * MIB))
def test_one_more_tensor_never_needs_a_much_smaller_cap(resident: list[int], step: Events, more: int) -> None:
    """A resident tensor more than the grain of the search raises the cap, or leaves it."""
    caps = []
    for sizes in (resident, [more, *resident]):
        seen = replay(sizes, [step])
        caps.append(smallest_cap(Script(resident=sizes, steps=[step]), seen))
    assert caps[1] > caps[0] - 20 * MIB


@given(SIZES, steps_of())
def test_allocated_never_passes_reserved(resident: list[int], step: Events) -> None:
    """Blocks lie in segments."""
    seen = replay(resident, [step])
    assert sum(resident) <= seen.allocated_bytes <= seen.reserved_bytes


def test_what_stays_is_met_by_the_next_step() -> None:
    """Gradients that are not given back leave their blocks to nobody: the states come on top, and the second step finds both."""
    first, again = [(1, 4 * MIB), (2, 12 * MIB), (2, -12 * MIB)], [(3, 12 * MIB), (3, -12 * MIB)]
    script = Script(resident=[], steps=[first, again], late=[12 * MIB], stays=True)
    assert play(script).allocated_bytes == (4 + 12 + 12) * MIB
    assert play(replace(script, stays=False)).allocated_bytes == (12 + 12) * MIB
