"""What is left alone for a while, and what is kept for one."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.hooks.breaker import Breaker
from peakgate.hooks.cache import Cache


@dataclass
class Clock:
    """Time that stands still."""

    now: float = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_a_breaker_opens_after_failures_in_a_row() -> None:
    """A success between them begins anew."""
    breaker = Breaker(failures=3, seconds=5, clock=Clock())
    for happened in (breaker.failed, breaker.failed, breaker.succeeded, breaker.failed, breaker.failed):
        happened()
    assert not breaker.is_open
    breaker.failed()
    assert breaker.is_open


def test_after_its_time_one_call_tries() -> None:
    """Its failure opens it again at once, its success closes it."""
    clock = Clock()
    breaker = Breaker(failures=3, seconds=5, clock=clock)
    for _ in range(3):
        breaker.failed()
    clock.now += 5
    assert not breaker.is_open
    breaker.failed()
    assert breaker.is_open
    clock.now += 5
    breaker.succeeded()
    breaker.failed()
    assert not breaker.is_open


def test_a_cache_forgets_what_is_old_and_what_was_not_used_for_longest() -> None:
    """Its size is bounded."""
    clock = Clock()
    cache = Cache[int](entries=2, seconds=10, clock=clock)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    clock.now += 11
    assert [cache.get(key) for key in "abc"] == [None, None, None]
