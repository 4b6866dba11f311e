"""Text from elsewhere as it may be shown: what would move a terminal's cursor, or turn the order of letters, is spelled out."""

from __future__ import annotations

import html
import unicodedata

from rich import markup

_SPELLED_OUT = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories (UAX 44 table 12) of controls, formats such as right-to-left overrides, surrogates and line separators."""


def visible(text: str) -> str:
    """`text` with control and format characters as \\x1b or \\u202e."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(letter) if unicodedata.category(letter) in _SPELLED_OUT else letter for letter in text)


def _spelled(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii") if ord(letter) < 0xD800 or ord(letter) > 0xDFFF else f"\\u{ord(letter):04x}"


def escape(text: str) -> str:
    """`text` for a console that reads markup."""
    return markup.escape(visible(text))


def escape_html(text: str) -> str:
    """`text` for a page."""
    return html.escape(visible(text))
