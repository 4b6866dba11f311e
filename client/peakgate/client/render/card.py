"""What a job runs on, in words."""

from __future__ import annotations

from peakgate.v1.prediction_pb2 import Capacity


def card_words(capacity: Capacity, unnamed: str = "the card") -> str:
    """The card's name, of a part of it as a share, and `unnamed` where only bytes were given."""
    if not capacity.gpu:
        return unnamed
    return f"a share of {capacity.gpu}" if capacity.is_part else capacity.gpu
