"""Page sizes and tokens."""

from __future__ import annotations

import pytest

from peakgate.server.errors import PeakgateError
from peakgate.server.pages import make_token, page_size, read_token


def test_sizes_are_coerced_and_negative_ones_refused() -> None:
    """0 is the default, too many are capped (AIP-158)."""
    assert [page_size(asked) for asked in (0, 7, 5000)] == [50, 7, 1000]
    with pytest.raises(PeakgateError):
        page_size(-1)


def test_a_token_gives_its_position_back() -> None:
    """An empty token is the first page."""
    assert read_token("list", make_token("list", 5, "x"), places=(int, str)) == (5, "x")
    assert read_token("list", "", places=(int, str)) is None


@pytest.mark.parametrize("token", ["%%%", "bm90IGpzb24=", make_token("other", 5, "x"), make_token("list", "x", 5), make_token("list")])
def test_a_token_of_another_list_is_refused(token: str) -> None:
    """Also one whose filters have changed, since they are part of the list's name."""
    with pytest.raises(PeakgateError) as caught:
        read_token("list", token, places=(int, str))
    assert caught.value.reason == "PAGE_TOKEN_INVALID"
