"""A traced step as the JSON object that `model.profile` takes (docs: `peakgate trace --help`).

`events` and `resident` are lists of words, deflated and in base64: `forward` … begin a phase; `t512` allocates 512 bytes of temporaries
(LETTERS names the others); `-3` frees the third last allocation; behind `@name` allocations are made on that stream, behind `@` on the
default stream again.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from typing import Any

from peakgate.client.tracer.entries import Allocation, Entry, Freed, Phase

VERSION = 1
LETTERS = {
    "temporaries": "t",
    "activations": "a",
    "gradients": "g",
    "parameters": "p",
    "buffers": "b",
    "inputs": "i",
    "optimizer_states": "o",
    "logits": "l",
    "workspaces": "w",
    "unknown": "u",
}
SLOTS = ("parameters", "buffers", "inputs", "optimizer_states", "workspaces", "unknown")
"""What is resident between steps; the rest that is alive at the start is allocated first."""


def words_of(start: Iterable[Allocation], entries: Iterable[Entry]) -> tuple[list[str], list[str]]:
    """(resident, events) as words; what is alive and not resident (gradients of an earlier micro-batch) is allocated as the step begins."""
    alive = list(start)
    resident = [f"{LETTERS[each.category]}{each.nbytes}" for each in alive if each.category in SLOTS and each.nbytes]
    events: list[str] = []
    places: dict[int, int] = {}
    stream = ""
    first, *rest = entries
    for entry in [first, *(each for each in alive if each.category not in SLOTS), *rest]:
        if isinstance(entry, Phase):
            events.append(entry.name)
        elif isinstance(entry, Freed):
            if entry.number in places:
                events.append(f"-{len(places) - places[entry.number]}")
        elif entry.nbytes:
            if entry.stream != stream:
                stream = entry.stream
                events.append(f"@{stream}")
            places[entry.number] = len(places)
            events.append(f"{LETTERS[entry.category]}{entry.nbytes}")
    return resident, events


def packed(words: Iterable[str]) -> str:
    """Words as one short text."""
    return base64.b64encode(zlib.compress(" ".join(words).encode(), 9)).decode()


def sizes_of(resident: Iterable[Allocation]) -> dict[str, int]:
    """Resident bytes by kind."""
    listed = list(resident)
    return {name: sum(each.nbytes for each in listed if each.category == name) for name in SLOTS}


def document(facts: dict[str, Any], start: list[Allocation], entries: list[Entry]) -> dict[str, Any]:
    """The profile."""
    resident, events = words_of(start, entries)
    return {"version": VERSION, **facts, "resident_bytes": sizes_of(start), "resident": packed(resident), "events": packed(events)}
