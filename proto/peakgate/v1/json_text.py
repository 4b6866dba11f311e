"""JSON text as a job document needs it: no key stated twice, and what is wrong said without the words of a parser's inside."""

from __future__ import annotations

import json
from collections.abc import Sequence


class JsonError(Exception):
    """Text that is no JSON document. `fields` holds (key, what is wrong) of each key that is stated twice."""

    def __init__(self, message: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.fields = tuple(fields)


def read_json(text: str) -> object:
    """The document that `text` holds; a byte order mark in front of it is passed over. Raises JsonError."""
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise JsonError(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise JsonError("is nested too deep, a job document has a few levels") from error
    except ValueError as error:  # the only other one: an integer of more digits than are converted
        raise JsonError("holds a number of thousands of digits, which no field takes") from error


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        fields = [(key, "is stated twice, needs to be stated once") for key in twice]
        raise JsonError(f"states {', '.join(twice)} twice", fields)
    return members
