"""How far a peak can be believed: what its samples show of it besides the maximum. One object a record, fed with every sample."""

from __future__ import annotations

from dataclasses import dataclass, field

from peakgate.agent.peaks import NO_FLAGS, Flag

FALL_RATIO = 0.01
"""A fall of more than this is memory given back: one sample after a peak no longer shows it."""
CONTEXT_BYTES = 1536 << 20
"""What a process holds before its framework allocates: a CUDA context takes 200 to 700 MB, above 1 GB before CUDA 11.7 (PyTorch issues
28113, 107667)."""
PREALLOCATED_RATIO = 0.70
"""JAX takes 75 % of the card at its first operation (docs.jax.dev, "GPU memory allocation"), TensorFlow nearly all of it."""
JUMP_SECONDS = 2.0
"""Two process lists at the default rate: what comes between them came at once."""
FLAT_SECONDS = 10.0
"""Twenty steps of a fast training, in which a caching allocator would have grown again."""
FULL_RATIO = 0.97
"""Of what programs can have at most. An allocation that fails leaves no trace in NVML, so a process that ends this high may have needed
more."""


@dataclass(slots=True)
class Quality:
    """`low_until` is the last moment when this was known to hold next to nothing: the last list without it; None: not known."""

    usable_bytes: int
    low_until: float | None = None
    says_it_preallocates: bool = False
    """The process's environment says so: a hint, which stands in for watching whether the memory stays flat."""
    longest_gap_seconds: float = 0.0
    flags: Flag = NO_FLAGS
    _last: float | None = field(default=None)
    _highest_bytes: int = field(default=0)
    _has_fallen: bool = field(default=False)
    _jumped_at: float | None = field(default=None)
    _jump_bytes: int = field(default=0)
    _is_past_the_jump: bool = field(default=False)

    def see(self, *, used_bytes: int, moment: float) -> None:
        """Takes one sample; `moment` on a clock that nobody sets."""
        if self._last is not None:
            self.longest_gap_seconds = max(self.longest_gap_seconds, moment - self._last)
        self._last = moment
        self._watch_falls(used_bytes)
        if not self._is_past_the_jump:
            self._watch_jump(used_bytes, moment)

    def process_ended(self, *, peak_bytes: int, card_was_full: bool) -> None:
        """The process is gone, how is not known: near a full card its peak is a lower bound."""
        if card_was_full or self.is_full(peak_bytes):
            self.flags |= Flag.CENSORED

    def is_full(self, used_bytes: int) -> bool:
        """Whether so much is next to all that programs can have."""
        return 0 < self.usable_bytes * FULL_RATIO <= used_bytes

    def _watch_falls(self, used_bytes: int) -> None:
        """A fall counts when another sample follows: a process that ends gives its memory back too."""
        if self._has_fallen:
            self.flags |= Flag.FLUCTUATING
        self._highest_bytes = max(self._highest_bytes, used_bytes)
        self._has_fallen = self._has_fallen or used_bytes < self._highest_bytes * (1 - FALL_RATIO)

    def _watch_jump(self, used_bytes: int, moment: float) -> None:
        if self._jumped_at is not None:
            is_flat = abs(used_bytes - self._jump_bytes) <= FALL_RATIO * self._jump_bytes
            if is_flat and moment - self._jumped_at >= FLAT_SECONDS:
                self.flags |= Flag.PREALLOCATED
            self._is_past_the_jump = not is_flat or Flag.PREALLOCATED in self.flags
        elif used_bytes <= CONTEXT_BYTES:
            self.low_until = moment
        else:
            self._reach(used_bytes, moment)

    def _reach(self, used_bytes: int, moment: float) -> None:
        """The first height above the context: a jump when it is most of the card and came at once, else an ordinary beginning."""
        rose_at_once = self.low_until is not None and moment - self.low_until <= JUMP_SECONDS
        is_most_of_the_card = 0 < PREALLOCATED_RATIO * self.usable_bytes <= used_bytes
        if not (rose_at_once and is_most_of_the_card):
            self._is_past_the_jump = True
            return
        self._jumped_at, self._jump_bytes = moment, used_bytes
        if self.says_it_preallocates:
            self.flags |= Flag.PREALLOCATED
            self._is_past_the_jump = True
