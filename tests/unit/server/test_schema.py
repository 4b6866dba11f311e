"""The document's JSON Schema."""

from __future__ import annotations

import json

from peakgate.memory.choices import CHOICES
from peakgate.server.schema import job_schema


def properties_of(schema: dict[str, object]) -> dict[str, dict[str, object]]:
    """The properties of an object's schema."""
    found = schema["properties"]
    assert isinstance(found, dict)
    return found


def test_the_schema_is_json_and_closed() -> None:
    """Unknown keys are errors at every level."""
    schema = json.loads(json.dumps(job_schema()))
    assert schema["required"] == ["model"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["batch"]["additionalProperties"] is False


def test_exactly_one_kind_of_model_is_required() -> None:
    """The six of the contract."""
    model = properties_of(job_schema())["model"]
    assert [each["required"] for each in model["oneOf"]] == [  # type: ignore[attr-defined]  # JSON
        ["preset"],
        ["hf_config"],
        ["transformer"],
        ["operations"],
        ["profile"],
        ["parameters"],
    ]


def test_every_choice_word_is_in_the_schema() -> None:
    """One table of words serves the checks and the schema."""
    text = json.dumps(job_schema())
    for words in CHOICES.values():
        assert all(json.dumps(word) in text for word in words)
    optimizer = properties_of(properties_of(job_schema())["optimizer"])
    assert optimizer["name"]["enum"] == list(CHOICES["optimizer.name"])


def test_short_forms_are_allowed() -> None:
    """`targets: all-linear` beside a list."""
    targets = properties_of(properties_of(job_schema())["lora"])["targets"]
    assert {"const": "all-linear"} in targets["anyOf"]  # type: ignore[operator]  # JSON
