"""Quantities and labels as bytes."""

from __future__ import annotations

import pytest

from peakgate.hooks.kubernetes.quantities import MEBIBYTE, bytes_of, count_of, label_bytes


@pytest.mark.parametrize(
    ("text", "want"),
    [("8", 8), (8, 8), ("80Gi", 80 << 30), ("1.5Gi", 3 << 29), ("4864Mi", 4864 << 20), ("20G", 20 * 10**9), ("1e3", 1000), ("25e-1", 2),
     ("+1k", 1000), ("100m", None), ("12Qx", None), ("", None), ("-1", None), ("٨", None), (True, None), ("1" * 40, None)],
)  # fmt: skip
def test_a_quantity_is_read_as_kubernetes_does(text: object, want: int | None) -> None:
    """Binary and decimal suffixes, exponents and fractions; what is no amount is none."""
    assert bytes_of(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [("81559", 81559 * MEBIBYTE), ("85520809984", 85520809984), ("80", None), ("83516416", None), ("-1", None), ("x", None)],
)
def test_a_label_has_the_unit_that_makes_sense(text: str, want: int | None) -> None:
    """MiB as documented, bytes as one release wrote; KiB or GiB are not guessed."""
    assert label_bytes(text) == want


def test_a_count_of_devices_is_bounded() -> None:
    """A million GPUs in a container are a mistake."""
    assert [count_of(each) for each in ("8", "0", "1M", "x", None)] == [8, 0, 1000000, 0, 0]
    assert count_of("1Mi") == 0
