"""The operator's cards: prices and preferences as settings write them."""

from __future__ import annotations

import pytest

from peakgate.server.card_order import by_preference, by_price


def test_prices_order_the_cards() -> None:
    """Cheapest first; other names of a card and slices are known; of one price the smaller card comes first."""
    text = "H100=2.5, a100-40gb = 1.2 ,h100-80gb/3g.40gb=1.1,l4=1.2"
    assert by_price(text) == ("h100-80gb/3g.40gb", "l4-24gb", "a100-40gb", "h100-80gb")
    assert by_price("") == ()


def test_a_preference_keeps_its_order() -> None:
    """As it is written."""
    assert by_preference("h100-80gb,l4") == ("h100-80gb", "l4-24gb")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("h100-80bg=2", "did you mean h100-80gb"),
        ("h100-80gb", "has no price"),
        ("h100-80gb=cheap", "the price of h100-80gb is 'cheap'"),
        ("h100-80gb=-1", "a number above 0"),
        ("h100-80gb=nan", "a number above 0"),
        ("h100=1,h100-80gb=2", "twice"),
    ],
)
def test_a_bad_price_is_named(text: str, want: str) -> None:
    """With the name, and the nearest one that is known."""
    with pytest.raises(ValueError, match=want):
        by_price(text)


def test_a_bad_preference_is_named() -> None:
    """The same names."""
    with pytest.raises(ValueError, match="did you mean l4-24gb"):
        by_preference("l4-42gb")
