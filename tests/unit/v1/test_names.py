"""The name of a prediction and its id."""

from __future__ import annotations

import pytest

from peakgate.v1.names import bare_id, full_name, request_id_of

UID = "6f1a3a0e-9d0c-4e0b-8f6e-6b1d8c1f7a55"


@pytest.mark.parametrize("given", ["predictions/ab12", "ab12"])
def test_a_name_and_its_id_are_told_from_each_other(given: str) -> None:
    """Either form gives both."""
    assert (full_name(given), bare_id(given)) == ("predictions/ab12", "ab12")


def test_no_name_has_no_id() -> None:
    """An answer of which nothing is stored has an empty name."""
    assert bare_id("") == ""


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (UID, UID),
        (f"predictions/{UID}", UID),
        (UID.upper(), UID.upper()),
        (UID.replace("-", ""), ""),
        (f"predictions/{UID.replace('-', '')}", ""),
        (f"{UID}\n", ""),
        (f"job/{UID}", ""),
        ("", ""),
    ],
)
def test_a_request_id_is_told_from_a_name_by_its_hyphens(given: str, want: str) -> None:
    """A prediction's own id is a UUID too, without them."""
    assert request_id_of(given) == want
