"""Sizes, ratios and moments as a person reads them; the unit is always written out."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

GB = 10**9
GIB = 2**30


def gb(size_bytes: int) -> str:
    """Decimal gigabytes: `116.1 GB`; small sizes in MB or kB."""
    if size_bytes >= GB // 10 or not size_bytes:
        return f"{size_bytes / GB:.1f} GB"
    return f"{size_bytes / 10**6:.1f} MB" if size_bytes >= 10**5 else f"{size_bytes / 1000:.1f} kB"


def gb_and_gib(size_bytes: int) -> str:
    """Both units, since vendors count in one and tools in the other: `116.1 GB (108.1 GiB)`."""
    return f"{gb(size_bytes)} ({size_bytes / GIB:.1f} GiB)"


def count(number: int) -> str:
    """A number of parameters: `1.31 billion`."""
    if number >= 10**9:
        return f"{number / 10**9:.2f} billion"
    return f"{number / 10**6:.1f} million" if number >= 10**6 else f"{number:,}"


def step_time(ratio: float) -> str:
    """A relative step time as a person says it: `33 % slower`."""
    if ratio <= 0:
        return "not estimated"
    percent = round((ratio - 1) * 100)
    return "as fast" if percent == 0 else f"{abs(percent)} % {'slower' if percent > 0 else 'faster'}"


def utc(moment: Timestamp) -> str:
    """A moment to the minute: `2026-05-01 12:00 UTC`."""
    return f"{moment.ToDatetime():%Y-%m-%d %H:%M} UTC"


def bar(part: float, width: int) -> str:
    """A bar of `width` cells of which the share `part` (0 to 1) is filled, to an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, part)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
