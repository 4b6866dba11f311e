"""A traceback of Python in a log: the frames above a failure, of the rank that failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_LINES = 3000
"""Above the failure; a recursion of a thousand frames is longer than any step of training."""

MOST_CUT_LINES = 80
"""Above the failure, when no beginning of a traceback is found: what stands higher is another thing."""

_CODE = re.compile(r"\w\(|\w = \w")

_LABEL = re.compile(r"^\s*(\[[^\]\n]{1,40}\]:?|rank:?\s*\d+ \||\d{1,5}:|\S{1,40} \| )\s?")
"""What launchers put before a line: torchrun's `[rank0]:` and `[default0]:`, srun's `0:`."""

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')
_BOXED = re.compile(r"^[│|]\s*(\S+\.py):(\d+) in (\S+)")
_HEAD = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class Frame:
    """A call: the file as it was written, the line, the function, and the words of that line where they follow."""

    file: str
    line: int
    function: str
    code: str = ""

    def __str__(self) -> str:
        """For a person: `trainer.py:2741 training_step`."""
        if not self.file:
            return self.code
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.line} {self.function}"


def label_of(line: str) -> str:
    """What a launcher put before a line, which names the rank."""
    match = _LABEL.match(line)
    return match[1] if match else ""


def unlabelled(line: str) -> str:
    """The line without it."""
    return _LABEL.sub("", line, count=1)


def frames_above(lines: list[str], at: int) -> tuple[Frame, ...]:
    """The frames of the traceback that ends in line `at`, outermost first. Where its beginning was cut off, what is left of it: some
    frames, or the line of code alone that was copied with the message."""
    label = label_of(lines[at])
    found: list[str] = []
    for line in reversed(lines[max(0, at - MOST_LINES) : at]):
        if label_of(line) != label and (label or _HEAD not in line):  # a logger's label may stand before the first line alone
            continue
        if _HEAD in line:
            return tuple(_frames(found[::-1]))
        found.append(unlabelled(line))
    near = found[:MOST_CUT_LINES]
    frames = tuple(_frames(near[::-1]))
    code = next((line.strip() for line in near[:1] if _CODE.search(line)), "")
    return frames or ((Frame("", 0, "", code),) if code else ())


def _frames(lines: list[str]) -> Iterator[Frame]:
    for number, line in enumerate(lines):
        match = _FRAME.search(line) or _BOXED.match(line.strip())
        if match:
            below = lines[number + 1].strip() if number + 1 < len(lines) else ""
            yield Frame(match[1], int(match[2]), match[3].rstrip(","), "" if _FRAME.search(below) else below)
