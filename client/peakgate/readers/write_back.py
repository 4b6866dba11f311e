"""Suggested changes of a job as edits of the launch that it was read from.

A number or a switch that stands in the launch as the job has it is replaced where it stands. What a format says in other words is a row of
`write_rows.py`; what follows from other settings (accumulation from a global batch) needs no edit. The rest is told in words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from peakgate.readers.edits import Edit, Scalar, edited, with_flag
from peakgate.readers.files import FileError, Files
from peakgate.readers.place import FLAG, JSON, TOML, YAML, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.write_rows import WRITES

SEGMENTS, VARIABLE = "framework.expandable_segments", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
"""A field that no flag says, and the variable that does (torch docs/notes/cuda.rst)."""

WRITABLE = (FLAG, YAML, JSON, TOML)


@dataclass(slots=True)
class Written:
    """`texts`: file, or "" for the command -> (its text, its text with the edits). `unsaid`: what has no place in the launch."""

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    unsaid: list[str] = field(default_factory=list)


def write_back(reading: Reading, changes: Mapping[str, Scalar], files: Files, command: str = "") -> Written:
    """The launch with the changes in it; nothing is written to any file. `command`: the text of a launch that is a command line."""
    out = Written()
    home = _home(reading)
    exports = changes.get(SEGMENTS) is True and home is not None and home.kind == FLAG
    said = {path: value for path, value in changes.items() if not (exports and path == SEGMENTS)}
    for edit in edits_of(reading, said, out.unsaid):
        file = edit.place.file
        try:
            before, text = out.texts.get(file) or 2 * ((files.text(file) if file else command),)
            out.texts[file] = before, _made(text, edit, reading)
        except (FileError, ValueError):
            out.unsaid.append(f"{edit.place.key}: {edit.value}")
    if exports and home is not None:  # the last: it moves the lines behind it
        _export(out, home.file, reading, files, command)
    return out


def _export(out: Written, file: str, reading: Reading, files: Files, command: str) -> None:
    """Sets the allocator's variable in front of the command that starts the program."""
    try:
        before, text = out.texts.get(file) or 2 * ((files.text(file) if file else command),)
    except FileError:
        out.unsaid.append(f"{SEGMENTS}: True")
        return
    if not file:
        out.texts[file] = before, f"env {VARIABLE} {text}"
        return
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if reading.program and reading.program in line.split()), None)
    if at is None:
        out.unsaid.append(f"{SEGMENTS}: True")
        return
    while at and lines[at - 1].rstrip().endswith("\\"):
        at -= 1
    out.texts[file] = before, "\n".join([*lines[:at], f"export {VARIABLE}", *lines[at:]])


def _made(text: str, edit: Edit, reading: Reading) -> str:
    stands = re.search(rf"(?<!\S){re.escape(edit.place.key)}(?=[\s=\\]|$)", text) is not None
    if edit.place.kind == FLAG and not edit.place.line and not stands:
        return with_flag(text, reading.program, edit.place.key, edit.value)
    return edited(text, [edit])


def edits_of(reading: Reading, changes: Mapping[str, Scalar], unsaid: list[str]) -> list[Edit]:
    """The edits, in the order of the changes; those without any are noted as `unsaid`."""
    rows, edits = WRITES.get(reading.format, {}), list[Edit]()
    home = _home(reading)
    for path, value in changes.items():
        settings = rows[path](value) if path in rows else None
        stated = reading.fields.get(path)
        if settings is None and stated is not None and _stands_as_it_is(stated, value):
            edits.append(Edit(stated.place, value))
        elif settings is None or (settings and home is None):
            unsaid.append(f"{path}: {value}")
        else:
            edits += [Edit(_place(reading, key, home), each) for key, each in settings.items() if home is not None]
    return edits


def _stands_as_it_is(stated: Stated, value: Scalar) -> bool:
    """Whether a field is a number that the launch states; words and switches are others in each format."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and not isinstance(stated.value, bool)
    return number and stated.place.kind in WRITABLE and isinstance(stated.value, int | float)


def _home(reading: Reading) -> Place | None:
    """Where most of the launch stands: there new settings go."""
    places = [stated.place for stated in reading.fields.values() if stated.place.kind in WRITABLE]
    if not places:
        return None
    (kind, file), _ = Counter((place.kind, place.file) for place in places).most_common(1)[0]
    return Place(kind=kind, file=file)


def _place(reading: Reading, key: str, home: Place) -> Place:
    """Where a setting stands, by any of the names that it has in the launch; else where it would."""
    name = _plain(key)
    for stated in reading.fields.values():
        if stated.place.kind in WRITABLE and _plain(stated.place.key) == name:
            return stated.place
    written = f"--{key.replace('_', '-') if reading.format in HYPHENS else key}" if home.kind == FLAG else key
    return replace(home, key=written)


HYPHENS = frozenset({"megatron"})
"""Formats whose flags are written with hyphens."""


def _plain(key: str) -> str:
    return key.lstrip("-").replace("-", "_")
