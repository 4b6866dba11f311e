"""A launch without what starts it."""

from __future__ import annotations

from dataclasses import replace

from peakgate.readers.launch import Launch


def peeled(launch: Launch) -> Launch:
    """The launch from its program on."""
    for at, word in enumerate(launch.words):
        if word.text.endswith(".py"):
            return replace(launch, words=launch.words[at:])
    return launch
