"""A container's command as words, each with its line of the manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from peakgate.readers.arguments import Word
from peakgate.readers.place import FLAG, Stated

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.\-]*)\)")
MOST_CHARACTERS = 1 << 20
"""Of a word after its variables are put in."""

MOST_WORDS = 10_000
"""Of a command; the kernel takes 2 MiB of arguments, and nobody writes that by hand."""

_FAR = 200
"""Lines behind a word in which the next one is looked for."""


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of the manifest, to find where a word stands."""

    lines: Sequence[str]

    def line_of(self, word: str, start: int) -> int:
        """The line, from `start` on, in which a text begins; `start` when it is not found soon."""
        blank = len(word) - len(word.lstrip("\n"))
        first = next((each.strip() for each in word.splitlines() if each.strip()), "")
        for number in range(max(start, 1), min(start + _FAR, len(self.lines) + 1)):
            if first and first in self.lines[number - 1]:
                return number - blank
        return start


def words_at(items: Sequence[Stated], known: Mapping[str, str], text: Text) -> list[Word]:
    """The words of `command` and `args`, with `$(NAME)` replaced."""
    words: list[Word] = []
    for stated in items:
        line = stated.place.line
        for each in stated.value if isinstance(stated.value, list) else [stated.text]:
            if each is None:
                continue
            line = text.line_of(str(each), line)
            words.append(Stated(expanded(str(each), known), replace(stated.place, kind=FLAG, key="", line=line)))
    return words[:MOST_WORDS]


def expanded(word: str, known: Mapping[str, str]) -> str:
    """A word with `$(NAME)` replaced, as the kubelet does; an unknown name stays, `$$` is one dollar."""
    if "$" not in word:
        return word
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else known.get(match[1], match[0]), word)[:MOST_CHARACTERS]
