"""Objects of the API of any form: what is of another type than is looked for is not there."""

from __future__ import annotations

import pytest

from peakgate.hooks.kubernetes.objects import at, list_at, mapping_at, mappings_at, text_at

OBJECT = {"spec": {"name": "x", "items": [{"a": 1}, "b", None]}}


def test_what_stands_at_a_path_is_found() -> None:
    """Each by its type; without a path it is the value itself."""
    assert at(OBJECT, "spec", "name") == text_at(OBJECT, "spec", "name") == text_at("x") == "x"
    assert mapping_at(OBJECT, "spec") is OBJECT["spec"]
    assert list_at(OBJECT, "spec", "items") == [{"a": 1}, "b", None]
    assert mappings_at(OBJECT, "spec", "items") == [{"a": 1}, {}, {}]


@pytest.mark.parametrize("value", [None, 5, "text", [], {"spec": 5}, {"spec": [{"name": "x"}]}, {"spec": {"name": {}, "items": 5}}])
def test_what_is_of_another_type_is_not_there(value: object) -> None:
    """Nothing is raised, whatever somebody sends."""
    assert text_at(value, "spec", "name") == ""
    assert mapping_at(value, "spec", "name") == {}
    assert (list_at(value, "spec", "items"), mappings_at(value, "spec", "items")) == ((), [])
    assert at(value, "spec", "name", "deeper") is None
