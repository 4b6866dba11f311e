"""Amounts of Kubernetes as numbers: quantities in bytes, counts, and a label's memory whose unit is told by its size. Pure."""

from __future__ import annotations

import re
from fractions import Fraction

from peakgate.readers.manifests.resources import UNITS

MEBIBYTE = 1 << 20
GIBIBYTE = 1 << 30
_QUANTITY = re.compile(r"\+?(\d{1,18})(?:\.(\d{1,9}))?(|[kMGTP]|[KMGTP]i|[eE][+-]?\d{1,2})$", re.ASCII)
_SMALLEST_MIB, _LARGEST_MIB = 1 << 10, 1 << 21
"""A GPU or a slice of one has between 1 GiB and 2 TiB."""


def bytes_of(quantity: object) -> int | None:
    """A quantity (Kubernetes API, resource.Quantity) rounded down; None for one that cannot be read, or is a thousandth or less."""
    match = _QUANTITY.match(str(quantity).strip())
    if match is None:
        return None
    whole, part, unit = match[1], match[2] or "", match[3]
    if unit[:1] in ("e", "E"):
        return int(Fraction(f"{whole}.{part or 0}{unit}"))
    return int(whole + part) * UNITS[unit] // int(f"1{'0' * len(part)}")


def gibibytes(size: int) -> str:
    """Bytes for a person: `40 GiB`."""
    return f"{size / GIBIBYTE:.4g} GiB"


def count_of(value: object) -> int:
    """A number of devices; 0 for what is none."""
    found = bytes_of(value)
    return found if found is not None and found < 1 << 20 else 0


def label_bytes(value: str) -> int | None:
    """What a label of a GPU's memory says. gpu-feature-discovery writes MiB, and one of its releases wrote bytes (NVIDIA/
    gpu-feature-discovery#26): no GPU has so many MiB. None where neither unit makes sense."""
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        return None
    number = int(value)
    if _SMALLEST_MIB <= number <= _LARGEST_MIB:
        return number * MEBIBYTE
    return number if _SMALLEST_MIB <= number // MEBIBYTE <= _LARGEST_MIB else None
