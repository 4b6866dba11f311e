"""A profile as `peakgate trace` or `peakgate probe` writes it, checked field by field: it comes from outside.

`events` and `resident` are words, deflated and in base64: `forward` begins a phase, `t512` allocates 512 bytes (the letter is a category of
LETTERS), `-3` frees the third last allocation; behind `@7` allocations are made on stream 7, behind `@graph…` in the pool of a CUDA graph,
and behind `@` on the default stream again.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

VERSION = 1

LETTERS = {
    "t": "temporaries",
    "a": "activations",
    "g": "gradients",
    "l": "logits",
    "p": "parameters",
    "b": "buffers",
    "i": "inputs",
    "o": "optimizer_states",
    "w": "workspaces",
    "u": "unknown",
}
PHASES = ("forward", "loss", "backward", "optimizer")
MOVING = ("temporaries", "activations", "gradients", "logits")
LARGEST_TEXT = 1 << 26
"""Bytes of inflated words beyond which a profile is a mistake: forty times those of an 80-layer model."""

LARGEST_BYTES = 1 << 50
LONGEST_STREAM = 64


class ProfileError(Exception):
    """A field of a profile that is wrong, and what to do."""

    def __init__(self, field: str, description: str) -> None:
        super().__init__(f"{field}: {description}")
        self.field, self.description = field, description


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """An allocation of a category."""

    category: str
    nbytes: int
    stream: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """The end of allocation `place`, counted from 0."""

    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a real run's snapshot shows beside its allocations; `reserved_bytes` is 0 where it does not."""

    reserved_bytes: int
    expandable: bool
    stacks: bool
    world: int
    """Ranks of the run; 0: not known."""
    failed: bool
    """The run ran out of memory."""


Word = Sized | Free | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A traced step. `events` are phases, allocations and frees in order."""

    source: str
    dtype: str
    batch_size: int
    optimizer: str
    implementation: str
    accumulation: int
    parameters: int
    trainable_parameters: int
    gradient_bytes: int
    saved_bytes: int
    resident: str
    events: str
    measured: Measured | None = None
    """Of a snapshot; a traced step has none."""


def read(data: Mapping[str, object]) -> Profile:
    """The profile of a job document. Raises ProfileError for the first field that is wrong."""
    if data.get("version") != VERSION:
        raise ProfileError("version", f"is {data.get('version')!r}, this version reads {VERSION}: trace the model again")
    optimizer = data.get("optimizer")
    if not isinstance(optimizer, Mapping):
        raise ProfileError("optimizer", "is missing: trace the model again")
    measured = _measured(data)
    profile = Profile(
        source=f"snapshot {_text(data, 'snapshot', '')}" if measured else f"{_text(data, 'factory', '')}, PyTorch {_text(data, 'torch')}",
        dtype=_text(data, "dtype"),
        batch_size=_whole(data, "batch_size"),
        optimizer=_text(optimizer, "name"),
        implementation=_text(optimizer, "implementation"),
        accumulation=_whole(data, "gradient_accumulation_steps"),
        parameters=_whole(data, "parameters"),
        trainable_parameters=_whole(data, "trainable_parameters"),
        gradient_bytes=_whole(data, "gradient_bytes"),
        saved_bytes=_whole(data, "saved_bytes"),
        resident=_text(data, "resident"),
        events=_text(data, "events"),
        measured=measured,
    )
    resident_of(profile)
    events_of(profile)
    return profile


def _measured(data: Mapping[str, object]) -> Measured | None:
    measured = data.get("measured")
    if measured is None:
        return None
    if not isinstance(measured, Mapping):
        raise ProfileError("measured", "is no mapping: probe the snapshot again")
    return Measured(
        reserved_bytes=_whole(measured, "reserved_bytes"),
        expandable=measured.get("expandable_segments") is True,
        stacks=measured.get("stacks") is True,
        world=_whole(data, "world_size"),
        failed=measured.get("out_of_memory") is True,
    )


def _text(data: Mapping[str, object], field: str, default: str | None = None) -> str:
    value = data.get(field, default)
    if not isinstance(value, str):
        raise ProfileError(field, "is missing or no text: trace the model again")
    return value


def _whole(data: Mapping[str, object], field: str) -> int:
    value = data.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_BYTES:
        raise ProfileError(field, f"is {value!r}, needs a whole number: trace the model again")
    return value


def resident_of(profile: Profile) -> tuple[Sized, ...]:
    """What lives all step long, one by one. Raises ProfileError."""
    words = _words("resident", profile.resident)
    if any(not isinstance(word, Sized) or word.category in MOVING for word in words):
        raise ProfileError("resident", "holds a word that is no resident allocation")
    return tuple(word for word in words if isinstance(word, Sized))


def events_of(profile: Profile) -> tuple[Word, ...]:
    """The step. Raises ProfileError."""
    words = _words("events", profile.events)
    if not words or words[0] != PHASES[0]:
        raise ProfileError("events", f"begins with {PHASES[0]}, which these do not")
    alive: set[int] = set()
    made = 0
    for word in words:
        if isinstance(word, Sized):
            alive.add(made)
            made += 1
        elif isinstance(word, Free):
            if word.place not in alive:
                raise ProfileError("events", f"frees allocation {word.place} of {made}, which is not alive")
            alive.discard(word.place)
    if any(isinstance(word, Sized) and word.category not in (*MOVING, "optimizer_states") for word in words):
        raise ProfileError("events", "allocates what is resident")
    return words


@lru_cache(maxsize=32)
def _words(field: str, packed: str) -> tuple[Word, ...]:
    out: list[Word] = []
    made, stream = 0, ""
    for text in _inflated(field, packed).split():
        if text in PHASES:
            out.append(text)
        elif text[0] == "@" and len(text) <= LONGEST_STREAM:
            stream = text[1:]
        elif text[0] == "-" and text[1:].isdigit():
            out.append(Free(place=made - int(text[1:])))
        elif text[0] in LETTERS and text[1:].isdigit() and len(text) < 20 and int(text[1:]) <= LARGEST_BYTES:
            out.append(Sized(category=LETTERS[text[0]], nbytes=int(text[1:]), stream=stream))
            made += 1
        else:
            raise ProfileError(field, f"cannot read {text[:20]!r}")
    return tuple(out)


def _inflated(field: str, packed: str) -> str:
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(base64.b64decode(packed, validate=True), LARGEST_TEXT)
        if inflate.unconsumed_tail or not inflate.eof:
            raise ProfileError(field, f"is cut off, or longer than {LARGEST_TEXT} bytes")
        return content.decode("ascii")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ProfileError(field, f"cannot be read ({error}): trace the model again") from error
