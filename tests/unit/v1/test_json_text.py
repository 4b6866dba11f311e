"""JSON text of a job document."""

from __future__ import annotations

import pytest

from peakgate.v1.json_text import JsonError, read_json


def test_a_byte_order_mark_is_passed_over() -> None:
    """Editors on Windows write one."""
    assert read_json("\ufeff{}") == {}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("{", "is not JSON: "),
        ("[" * 100_000, "is nested too deep"),
        ("9" * 5000, "holds a number of thousands of digits"),
        ('{"a": {"b": 1, "b": 2}}', "states b twice"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(text: str, want: str) -> None:
    """No word of the parser's inside."""
    with pytest.raises(JsonError, match=f"^{want}"):
        read_json(text)


def test_keys_that_are_stated_twice_are_named() -> None:
    """As bad fields."""
    with pytest.raises(JsonError) as raised:
        read_json('{"b": 1, "a": 1, "b": 2, "a": 3}')
    assert [key for key, _ in raised.value.fields] == ["a", "b"]
