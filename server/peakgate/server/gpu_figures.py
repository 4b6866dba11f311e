"""What was seen of a job on one GPU, once it is decided which source counts. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.server.store.records import FLAGS, HELPER

LARGEST_CACHE_RATIO = 1.35
"""Reserved over allocated: 1.26 to 1.35 were printed for full fine-tunes (llama-cookbook issues 41 and 165), so the blocks in use
were at least the device peak over this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFigures:
    """What was seen of a job on one GPU.

    The device peak lies between `least_peak_bytes` and `most_peak_bytes`. `allocated_bytes` and `reserved_bytes` are those of the
    in-process helper, 0 where it does not report or cannot be used. `confidence` is A accounting, B helper and samples agree, C a
    sampled staircase, D a sampled figure that fell in between, or an import.
    """

    node: str
    gpu_uuid: str
    total_bytes: int
    source: str
    confidence: str
    least_peak_bytes: int
    most_peak_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    flags: int
    longest_sequence: int
    alloc_retries: int
    has_oom: bool

    @property
    def has_helper(self) -> bool:
        """Whether the allocator's figures can be used."""
        return self.allocated_bytes > 0

    @property
    def rests_on(self) -> str:
        """The source of the device peak, and `+torch` where the helper says what of it was in use."""
        return f"{self.source}+{HELPER}" if self.has_helper and self.source != HELPER else self.source

    @property
    def in_use_bytes(self) -> int:
        """A lower end of the need: blocks in use and what lies outside the allocator.

        With torch's own figures that is device − reserved + allocated; without them the device peak over the largest cache ratio.
        """
        if self.has_helper:
            return max(0, self.least_peak_bytes - self.reserved_bytes) + self.allocated_bytes
        return int(self.least_peak_bytes / LARGEST_CACHE_RATIO)

    def has(self, *flags: str) -> bool:
        """Whether one of these words was said of this GPU."""
        return any(self.flags & FLAGS[flag] for flag in flags)
