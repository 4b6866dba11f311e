"""Single values of a job document: taken when they are what the field needs, refused with a description when not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from google.protobuf.descriptor import FieldDescriptor

_INT64_LIMIT = 2**63


class ScalarError(Exception):
    """A value that a field cannot take; the text says what it is and what is needed."""


def scalar_of(field: FieldDescriptor, value: object) -> str | int | float | bool:
    """`value` as the scalar that `field` holds. Raises ScalarError with what is wrong and what is needed."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return text_of(value)
        case FieldDescriptor.CPPTYPE_BOOL:
            return truth_of(value)
        case FieldDescriptor.CPPTYPE_INT64:
            return whole_of(value)
        case _:
            return number_of(value)


def text_of(value: object) -> str:
    """Text that UTF-8 can hold; a number is refused, since YAML reads an unquoted version 2.10 as 2.1."""
    if not isinstance(value, str):
        quote = " (put it in quotes)" if isinstance(value, bool | int | float) else ""
        raise ScalarError(f"is {kind_of(value)}, needs text{quote}")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ScalarError("holds half of a surrogate pair, needs Unicode text")
    return value


def truth_of(value: object) -> bool:
    """True or false, never a number."""
    if not isinstance(value, bool):
        raise ScalarError(f"is {kind_of(value)}, needs true or false")
    return value


def whole_of(value: object) -> int:
    """A signed 64-bit integer; 8192.0 is one, "8192" is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScalarError(f"is {kind_of(value)}, needs a whole number")
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        raise ScalarError(f"is {value}, needs a whole number")
    if not -_INT64_LIMIT <= value < _INT64_LIMIT:
        raise ScalarError("is beyond 64 bits, needs a number below 9.2e18")
    return int(value)


def number_of(value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScalarError(f"is {kind_of(value)}, needs a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ScalarError(f"is {shown(value)}, needs a finite number")
    return number


def kind_of(value: object) -> str:
    """What `value` is, in the words of someone who writes YAML."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {shown(value)}"
        case str():
            return f"the text {shown(value)!r}"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def shown(value: object) -> str:
    """`value` as text of a length that fits into a sentence."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "of more than 30 digits"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
