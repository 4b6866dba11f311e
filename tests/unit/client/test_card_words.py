"""What a job runs on, in words."""

from __future__ import annotations

import pytest

from peakgate.client.render.card import card_words
from peakgate.v1.prediction_pb2 import Capacity


@pytest.mark.parametrize(
    ("capacity", "want"),
    [
        (Capacity(gpu="h100-80gb"), "h100-80gb"),
        (Capacity(gpu="h100-80gb", is_part=True), "a share of h100-80gb"),
        (Capacity(total_bytes=1), "it"),
    ],
)
def test_a_share_is_not_called_a_card(capacity: Capacity, want: str) -> None:
    """Nor is what has only bytes called anything."""
    assert card_words(capacity, "it") == want
