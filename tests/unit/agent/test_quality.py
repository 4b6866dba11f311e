"""What the samples of a record say besides its maximum."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.unit.agent.builders import GIB

from peakgate.agent.peaks import NO_FLAGS, Flag
from peakgate.agent.quality import Quality

CARD = 80 * GIB


def seen(samples: Iterable[tuple[float, float]], *, low_until: float | None = None, says_it_preallocates: bool = False) -> Quality:
    """Samples of (moment, GiB) of a process on a card of 80 GiB."""
    quality = Quality(usable_bytes=CARD, low_until=low_until, says_it_preallocates=says_it_preallocates)
    for moment, gib in samples:
        quality.see(used_bytes=int(gib * GIB), moment=moment)
    return quality


def flat(start: float, end: float, gib: float) -> list[tuple[float, float]]:
    """A sample a second."""
    return [(start + step, gib) for step in range(int(end - start) + 1)]


def test_the_longest_gap_is_between_two_samples() -> None:
    """Also when nobody said that a reading failed."""
    assert seen([(0, 1), (1, 1), (43.5, 1), (44, 1)]).longest_gap_seconds == 42.5


@pytest.mark.parametrize(
    ("heights", "want"),
    [
        ([10, 20, 30, 30], NO_FLAGS),
        ([10, 30, 29.8, 30], NO_FLAGS),
        ([10, 30, 29, 30], Flag.FLUCTUATING),
        ([30, 29.8, 29.6, 29.4, 29.4], Flag.FLUCTUATING),
        ([10, 30, 5], NO_FLAGS),
    ],
)
def test_memory_that_is_given_back_is_told(heights: list[float], want: Flag) -> None:
    """More than a hundredth below the highest, with another sample after it: the last fall is the process ending."""
    assert seen((float(place), height) for place, height in enumerate(heights)).flags == want


def test_most_of_the_card_at_once_and_flat_is_taken_in_advance() -> None:
    """JAX's 75 % within two seconds of a bare context."""
    assert seen([(0, 0.5), *flat(1.5, 15, 60)]).flags == Flag.PREALLOCATED


def test_a_process_that_appears_with_most_of_the_card_took_it_at_once() -> None:
    """The list before did not have it; when there was none shortly before, the process may be hours old."""
    assert seen(flat(1, 15, 60), low_until=0.0).flags == Flag.PREALLOCATED
    assert seen(flat(1, 15, 60), low_until=None).flags == NO_FLAGS
    assert seen(flat(100, 115, 60), low_until=0.0).flags == NO_FLAGS


@pytest.mark.parametrize(
    "samples",
    [
        [(0, 0.5), (1, 14), *flat(2, 15, 60)],  # weights first, then the first step
        [(0, 0.5), *flat(1, 15, 50)],  # not most of the card
        [(0, 0.5), *flat(1, 5, 60), *flat(6, 20, 63)],  # it grew again
        [(0, 0.5), *flat(3, 20, 60)],  # it took its time
        [(0, 0.5), *flat(1, 6, 60)],  # not watched for long enough
    ],
)
def test_a_training_that_grows_is_not_taken_in_advance(samples: list[tuple[float, float]]) -> None:
    """Each of these is what a caching allocator does."""
    assert seen(samples).flags == NO_FLAGS


def test_an_environment_that_says_so_needs_no_watching() -> None:
    """The hint stands in for the flatness, never for the jump."""
    assert seen([(0, 0.5), (1, 60)], says_it_preallocates=True).flags == Flag.PREALLOCATED
    assert seen([(0, 0.5), (1, 14), (2, 60)], says_it_preallocates=True).flags == NO_FLAGS


@pytest.mark.parametrize(
    ("peak_gib", "card_was_full", "want"), [(77.7, False, Flag.CENSORED), (70, False, NO_FLAGS), (70, True, Flag.CENSORED)]
)
def test_who_ends_near_a_full_card_may_have_needed_more(peak_gib: float, *, card_was_full: bool, want: Flag) -> None:
    """97 % of what programs can have, by itself or with its neighbours."""
    quality = seen([(0, peak_gib)])
    quality.process_ended(peak_bytes=int(peak_gib * GIB), card_was_full=card_was_full)
    assert quality.flags == want


def test_a_card_of_unknown_size_is_never_full() -> None:
    """NVML says nothing of its total memory there."""
    assert not Quality(usable_bytes=0).is_full(0)
