"""The failure in a log: its message, the frames above it, and the steps before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peakgate.client.diagnose.messages import KINDS, Kind, Message, read_message
from peakgate.client.diagnose.traceback import Frame, frames_above, unlabelled
from peakgate.client.diagnose.where import steps_before

MOST_LIKE_IT = 64
"""Failures of one kind that are looked at, from the last: one a rank."""

STEPS_WITHIN = 2**20
"""Characters above a failure in which the last step is looked for."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a log says of it; `steps` is None where the log shows none."""

    message: Message
    frames: tuple[Frame, ...]
    steps: int | None


def find_failure(windows: Iterable[str]) -> Failure | None:
    """The failure that says most, in the window nearest to the log's end that has one; of equal ones the last that has a traceback."""
    weak = None
    for text in windows:
        found = _in(text)
        if found is not None and found.message.kind.where == "gpu":
            return found
        weak = weak or found  # what failed on the GPU may stand before what followed from it
    return weak


def _in(text: str) -> Failure | None:
    small = text.lower()
    for kind in KINDS:
        places = kind.places(text, small)
        if places:
            return _of_kind(kind, text, places[-MOST_LIKE_IT:])
    return None


def _of_kind(kind: Kind, text: str, places: list[int]) -> Failure:
    lines = text.split("\n")
    traced = ((place, frames_above(lines, text.count("\n", 0, place))) for place in reversed(places))
    chosen, frames = next((each for each in traced if each[1]), (places[-1], ()))
    start = text.rfind("\n", 0, chosen) + 1
    return Failure(read_message(kind, unlabelled(text[start:])), frames, steps_before(text[max(0, chosen - STEPS_WITHIN) : chosen]))
