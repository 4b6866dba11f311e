"""A container's command as the text that a shell would run, its lines where they stand in the manifest."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename

from peakgate.readers.place import Stated

SHELLS = ("sh", "bash", "zsh", "dash", "ash")
_SCRIPT_FLAG = re.compile(r"-[a-zA-Z]*c$")
_NAME = re.compile(r"[A-Za-z_]\w*$")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.\-]*)\)")


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of the manifest, to find where a word stands."""

    lines: Sequence[str]

    def line_of(self, word: str, start: int) -> int:
        """The line, from `start` on, in which a text begins; `start` when it is not found soon."""
        first = next((each.strip() for each in word.splitlines() if each.strip()), "")
        for number in range(start, min(start + 200, len(self.lines) + 1)):
            if first and first in self.lines[number - 1]:
                return number
        return start


def script_of(words: Sequence[Stated], known: Mapping[str, str], text: Text) -> str:
    """The script that stands for a command and its arguments, with the variables that are known set before it; each line has the number
    that it has in the manifest."""
    items = _items(words, known)
    head = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in known.items() if _NAME.match(name) and len(value) < 10_000)
    head = head.replace("\nexport ", "; export ") if head.count("\n") == len(head.splitlines()) else head
    at = 1 + head.count("\n")
    inner = _inner(items)
    if inner is not None:
        script, start = inner
        first = text.line_of(script, start)
        blank = len(script) - len(script.lstrip("\n"))
        return f"{head}{_down(at, first - blank)}{script}"
    out = head
    for index, (word, start) in enumerate(items):
        line = text.line_of(word, max(start, at))
        gap = max(0, line - at)
        out += _down(at, line) if index == 0 else " " + "\\\n" * gap
        out += shlex.quote(word)
        at = max(at, line) + word.count("\n")
    return f"{out}\n"


def _items(words: Sequence[Stated], known: Mapping[str, str]) -> list[tuple[str, int]]:
    return [
        (expanded(str(each), known), stated.place.line)
        for stated in words
        for each in (stated.value if isinstance(stated.value, list) else [stated.text])
        if each is not None
    ]


def _inner(items: Sequence[tuple[str, int]]) -> tuple[str, int] | None:
    """The script of `bash -c SCRIPT`, also with other flags before it, behind `env` or an init program."""
    for index, (word, _) in enumerate(items[:4]):
        if basename(word) in SHELLS:
            for at in range(index + 1, min(index + 5, len(items) - 1)):
                if _SCRIPT_FLAG.match(items[at][0]):
                    return items[at + 1]
                if not items[at][0].startswith(("-", "+")) and items[at - 1][0] != "-o":
                    return None
    return None


def _down(at: int, line: int) -> str:
    return "\n" * max(0, line - at)


def expanded(word: str, known: Mapping[str, str]) -> str:
    """A word with `$(NAME)` replaced, as the kubelet does; an unknown name stays, `$$` is one dollar."""
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else known.get(match[1], match[0]), word)
