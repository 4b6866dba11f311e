"""A change of the job as an edit of the launch it was read from, in the launch's own syntax.

A value that stands somewhere is replaced where it stands; one that does not is put where its siblings are. Everything else of the text
stays as it is, comments and order included.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from peakgate.readers.files import FileError
from peakgate.readers.place import FLAG, JSON, TOML, YAML, Place
from peakgate.readers.settings import Settings, read_settings

Scalar = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A setting and its new value. `place.line` 0: it is not stated yet; an empty `place.file` is the command line."""

    place: Place
    value: Scalar


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text of one file, or of a command, with the edits made. Raises ValueError for one that has no place in it."""
    for edit in edits:
        text = _WAYS[edit.place.kind](text, edit if edit.place.line or edit.place.kind == FLAG else _looked_up(text, edit))
    return text


def _looked_up(text: str, edit: Edit) -> Edit:
    """The edit with its line, where the setting stands in the text although nothing was read of it."""
    try:
        stated = read_settings(text, edit.place.file)(edit.place.key)
    except FileError as error:
        raise ValueError(str(error)) from error
    return Edit(stated.place, edit.value) if stated is not None else edit


def diff(before: str, after: str, file: str) -> str:
    """What changes, as `diff -u` has it; empty without a change."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), file or "command", file or "command", lineterm="", n=1)
    return "\n".join(lines)


def _replaced_line(text: str, number: int, pattern: str, new: str) -> str | None:
    """The text with a part of one line replaced; None where the line does not hold it."""
    lines = text.split("\n")
    if not 0 < number <= len(lines):
        return None
    changed, count = re.subn(pattern, lambda match: f"{match[1]}{new}{match[2]}", lines[number - 1], count=1)
    if not count:
        return None
    lines[number - 1] = changed
    return "\n".join(lines)


def _inserted(text: str, number: int, line: str) -> str:
    """The text with a line before the line `number`, from 1; behind the last one where that is beyond it."""
    lines = text.split("\n")
    at = min(number - 1, len(lines))
    return "\n".join([*lines[:at], line, *lines[at:]])


# ---- YAML
def _yaml_value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def _in_yaml(text: str, edit: Edit) -> str:
    *parents, name = edit.place.key.split(".")
    value = _yaml_value(edit.value)
    pattern = rf"^(\s*(?:- )?[\"']?{re.escape(name)}[\"']?\s*:[ \t]*)(?:\"[^\"]*\"|'[^']*'|[^#\n]*?)([ \t]*(?:#.*)?)$"
    if changed := _replaced_line(text, edit.place.line, pattern, value):
        return changed
    return _beside_siblings(text, edit, parents, lambda indent: f"{indent}{name}: {value}")


def _beside_siblings(text: str, edit: Edit, parents: list[str], make: Callable[[str], str]) -> str:
    """Puts a new key before the first one of its block; a block that is not there is put at the end."""
    settings = read_settings(text, edit.place.file or ("x.json" if edit.place.kind == JSON else "x.yaml"))
    prefix = ".".join(parents)
    siblings = _children(settings, prefix)
    if siblings:
        first = min(siblings)
        indent = re.match(r"\s*", text.split("\n")[first - 1])
        return _inserted(text, first, make(indent[0] if indent else ""))
    if edit.place.kind == JSON or parents:
        raise ValueError(f"{edit.place.key}: no block {prefix or 'of its own'} to put it in")
    body = text.rstrip("\n")
    return f"{body}\n{make('')}\n"


def _children(settings: Settings, prefix: str) -> list[int]:
    """Lines of the direct children of a block."""
    start = f"{prefix}." if prefix else ""
    found = [(path.removeprefix(start), stated) for path, stated in settings.leaves.items() if path.startswith(start)]
    return [stated.place.line for rest, stated in found if "." not in rest and stated.place.line]


# ---- JSON
def _in_json(text: str, edit: Edit) -> str:
    *parents, name = edit.place.key.split(".")
    value = json.dumps(edit.value)
    pattern = rf"(\"{re.escape(name)}\"\s*:\s*)(?:\"[^\"]*\"|\[[^\]]*\]|[^,}}\s]+)()"
    if changed := _replaced_line(text, edit.place.line, pattern, value):
        return changed
    return _beside_siblings(text, edit, parents, lambda indent: f'{indent}"{name}": {value},')


# ---- TOML
def _in_toml(text: str, edit: Edit) -> str:
    section, _, name = edit.place.key.rpartition(".")
    value = json.dumps(edit.value)
    pattern = rf"^(\s*[\"']?{re.escape(name)}[\"']?\s*=\s*)(?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^#\n]*?)([ \t]*(?:#.*)?)$"
    if changed := _replaced_line(text, edit.place.line, pattern, value):
        return changed
    for number, line in enumerate(text.split("\n"), start=1):
        if re.match(rf"\s*\[\s*{re.escape(section)}\s*\]", line):
            return _inserted(text, number + 1, f"{name} = {value}")
    if not section:
        return _inserted(text, 1, f"{name} = {value}")
    body = text.rstrip("\n")
    return f"{body}\n\n[{section}]\n{name} = {value}\n"


# ---- flags of a command, on one line or on many
def _in_flags(text: str, edit: Edit) -> str:
    flag, value = edit.place.key, edit.value
    words = "" if value is True else _flag_value(value)
    found = re.compile(rf"(?<!\S){re.escape(flag)}(?=[\s=\\]|$)(?:(=|[ \t]+)(?!--?[A-Za-z])(\"[^\"]*\"|'[^']*'|[^\s\\\"']+))?")
    lines = text.split("\n")
    numbers = [edit.place.line - 1] if 0 < edit.place.line <= len(lines) else range(len(lines))
    for number in numbers:
        match = found.search(lines[number])
        if match is None:
            continue
        joined = match[1] or " "
        new = "" if value is False else f"{flag}{joined}{words}" if words else flag
        lines[number] = lines[number][: match.start()] + new + lines[number][match.end() :]
        return "\n".join(lines)
    if value is False:
        return text
    raise ValueError(f"{flag}: not on the line that it was read from")


def _flag_value(value: Scalar) -> str:
    text = " ".join(value) if isinstance(value, list) else str(value)
    return text if re.fullmatch(r"[\w./:,=+@%\- ]+", text) else json.dumps(text)


def with_flag(text: str, behind: str, flag: str, value: Scalar) -> str:
    """A command or script with a new flag behind the word `behind`, where that first stands. Raises ValueError where it does not."""
    match = re.search(rf"(?<!\S){re.escape(behind)}(?=\s|\\|$)", text)
    if match is None:
        raise ValueError(f"{behind} does not stand in the text")
    words = flag if value is True else f"{flag} {_flag_value(value)}"
    return f"{text[: match.end()]} {words}{text[match.end() :]}"


_WAYS = {YAML: _in_yaml, JSON: _in_json, TOML: _in_toml, FLAG: _in_flags}


Writes = Mapping[str, str]
"""Of a format: path of the job document -> the setting that says it, empty where it follows from others (accumulation from a global
batch)."""
