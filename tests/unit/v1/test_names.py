"""The name of a prediction and its id."""

from __future__ import annotations

import pytest

from peakgate.v1.names import bare_id, full_name


@pytest.mark.parametrize("given", ["predictions/ab12", "ab12"])
def test_a_name_and_its_id_are_told_from_each_other(given: str) -> None:
    """Either form gives both."""
    assert (full_name(given), bare_id(given)) == ("predictions/ab12", "ab12")


def test_no_name_has_no_id() -> None:
    """An answer of which nothing is stored has an empty name."""
    assert bare_id("") == ""
