"""MIG slices by their profile alone."""

from __future__ import annotations

import pytest
from tests.unit.hooks.kubernetes.test_gpus import CATALOGUE

from peakgate.hooks.kubernetes.slices import slices_named


@pytest.mark.parametrize(
    ("profile", "want"),
    [
        ("1g.5gb", {"a100-40gb/1g.5gb"}),
        ("1g.5gb+me", {"a100-40gb/1g.5gb"}),
        ("1g.10gb", {"a100-40gb/1g.10gb", "a100-80gb/1g.10gb", "h100-80gb/1g.10gb"}),
        ("9g.5gb", set()),
        ("", set()),
    ],
)
def test_a_profile_is_of_every_card_that_has_it(profile: str, want: set[str]) -> None:
    """Whole cards have none."""
    assert {each.gpu for each in slices_named(profile, CATALOGUE)} == want
