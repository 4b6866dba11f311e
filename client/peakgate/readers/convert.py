"""What a setting's text means: numbers, switches, words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from peakgate.readers.place import Stated
from peakgate.readers.reading import Convert, Value

TRUE, FALSE = ("true", "1", "yes", "on", "y", "t", ""), ("false", "0", "no", "off", "n", "f", "none", "null")
_NUMBER = re.compile(r"[+-]?(\d[\d_]*)(\.\d*)?([eE][+-]?\d+)?$")
LARGEST = 1 << 62


def whole(stated: Stated) -> int:
    """A whole number; `1e6`, `4_096` and `2**13` are. Raises ValueError."""
    value = stated.value
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else _number(stated.text.strip())
    if number != number or abs(number) > LARGEST or number != int(number):
        raise ValueError("is no whole number")
    return int(number)


def number(stated: Stated) -> float:
    """A number. Raises ValueError."""
    plain = stated.value if isinstance(stated.value, int | float) and not isinstance(stated.value, bool) else None
    if plain is not None and abs(plain) > LARGEST:
        raise ValueError("is no number")
    value = float(plain if plain is not None else _number(stated.text.strip()))
    if value != value or abs(value) > LARGEST:
        raise ValueError("is no number")
    return value


def _number(text: str) -> float:
    base, power, exponent = text.partition("**")
    if power and base.strip().isdigit() and exponent.strip().isdigit() and int(exponent) <= 62 and int(base) <= 1024:
        return float(int(base) ** int(exponent)) if int(base) ** int(exponent) < LARGEST else float("nan")
    if not _NUMBER.match(text) or len(text) > 40:
        raise ValueError("is no number")
    return float(text.replace("_", ""))


def positive(stated: Stated) -> int | None:
    """A whole number above 0; anything else (0, -1: not used, or to be found at run time) says nothing."""
    size = whole(stated)
    return size if size > 0 else None


def flag(stated: Stated) -> bool:
    """A switch: a bare flag is on. Raises ValueError."""
    text = stated.text.strip().lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError("is neither true nor false")


def off(stated: Stated) -> bool:
    """The opposite of a switch: `--no-…`, `--disable-…`."""
    return not flag(stated)


def text(stated: Stated) -> str:
    """The text itself."""
    return stated.text.strip()


def words(stated: Stated | None) -> list[str]:
    """The words of a list, or of a text with commas or spaces between them; none where it is not stated."""
    if stated is None:
        return []
    parts = stated.value if isinstance(stated.value, list) else [stated.text]
    return [word.strip(" \"'[]") for part in parts for word in str(part).replace(" ", ",").split(",") if word.strip(" \"'[]")]


def always(value: Value) -> Convert:
    """The same value whenever the setting is switched on."""
    return lambda stated: value if flag(stated) else None


def one_of(words: Mapping[str, Value | None]) -> Convert:
    """The value of a word, case and hyphens aside; None: it says nothing. Raises ValueError for another word."""
    known = {_plain(word): value for word, value in words.items()}

    def convert(stated: Stated) -> Value | None:
        word = _plain(stated.text)
        if word not in known:
            raise ValueError(f"is none of {', '.join(words)}")
        return known[word]

    return convert


def _plain(word: str) -> str:
    return word.strip().lower().replace("-", "_")
