"""`${…}`: the value of a variable, and what is made of it (Bash's manual, 3.5.3)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

from peakgate.readers.shell.values import Segment, Shell, Value, assumed_in, doubted, joined, known, text_of

_FORM = re.compile(r"(!)?(#(?=.))?([A-Za-z_]\w*|\d+|[@*#?$!\-])(?:\[([^\]]*)\])?(.*)$", re.DOTALL)
_OPTIONAL = re.compile(r"(ARGS?|ARGUMENTS|OPTS?|OPTIONS?|FLAGS?|PARAMS|EXTRA\w*|OVERRIDES?|PREFIX|LAUNCHER)\d*$", re.IGNORECASE)
"""Names of variables that stand for any number of words, so that an unset one is none."""

LONGEST_PATTERN, LONGEST_MATCHED = 200, 300
Text = Callable[[str], Value]
"""Expands what stands behind an operator."""


class Found:
    """Values, and whether each is a word of its own between double quotes."""

    __slots__ = ("listed", "values")

    def __init__(self, values: list[Value], *, listed: bool = False) -> None:
        self.values, self.listed = values, listed


def parameter(raw: str, line: int, shell: Shell, text: Text) -> Found:
    """What a parameter stands for; `text` expands the words in it."""
    match = _FORM.match(raw)
    if not match:
        return unknown(raw, line, shell)
    indirect, length, name, index, operation = match.groups()
    if indirect and name != "":
        return _indirect(name, index, operation, line, shell, text)
    stored = _stored(name, _index(index, text), shell)
    listed = (name == "@" or index == "@") and not length
    if length:
        return _length(stored, index, name, line, shell)
    if index == "*" or name == "*":
        stored = [joined(stored)] if stored else stored
    if not operation:
        if stored is None or (not stored and not listed and name not in ("*",) and index is None):
            absent = _OPTIONAL.match(name) or (index in ("@", "*") and not shell.unseen)  # no environment holds an array
            shell.budget.left_out |= bool(absent) and shell.unseen
            shell.budget.absent |= bool(absent) and index is None and _may_be_given(name, shell)
            return Found([], listed=listed) if absent else unknown(raw, line, shell)
        return Found(stored, listed=listed)
    return _operated(raw, operation, stored, line, shell, text, listed=listed)


def unknown(raw: str, line: int, shell: Shell) -> Found:
    """A value that is not known, by the name that it has in the script."""
    shown = f"${raw}" if re.fullmatch(r"\w+|[@*#?$!\-]", raw) else f"${{{raw[:80]}}}"
    return Found([(Segment(shown, line, shell.file, known=False),)])


def _index(index: str | None, text: Text) -> str | None:
    return index if index in (None, "@", "*", "0") else text_of(text(index or "")).strip("\"'")


def _stored(name: str, index: str | None, shell: Shell) -> list[Value] | None:
    """The values under a name; None: it is not set, or nobody said it."""
    if name in ("@", "*"):
        return list(shell.arguments or [])
    if name == "#":
        return None if shell.arguments is None else [(Segment(str(len(shell.arguments)), 0, shell.file),)]
    if name == "0":
        return [(Segment(shell.file or "bash", 0, shell.file),)]
    if name.isdigit():
        if shell.arguments is None:
            return None
        return shell.arguments[int(name) - 1 : int(name)] or [()] if len(name) < 6 else [()]
    if name == "BASH_SOURCE":
        return [(Segment(shell.file, 0, shell.file),)] if shell.file else None
    value = shell.get(name)
    if value is None:
        return [] if index in ("@", "*") and name in shell.variables else None
    if index is None:
        return [value]
    variable = shell.variables[name]
    elements = variable.elements
    if index in ("@", "*"):
        return [doubted(each, variable) for each in elements.values()]
    if index.startswith("-") and index[1:].isdigit() and len(index) < 6:
        return list(elements.values())[int(index) :][:1] or None
    chosen = elements.get(index) or elements.get(_number(index, shell))
    return None if chosen is None else [doubted(chosen, variable)]


def _number(index: str, shell: Shell) -> str:
    value = shell.get(index) if index.isidentifier() else None
    return text_of(value) if value is not None else index


def _length(stored: list[Value] | None, index: str | None, name: str, line: int, shell: Shell) -> Found:
    if index in ("@", "*") or name in ("@", "*"):
        count = len(stored or [])
    elif stored is None or not all(map(known, stored)):
        return unknown(f"#{name}", line, shell)
    else:
        count = len(text_of(stored[0]) if stored else "")
    return Found([(Segment(str(count), line, shell.file),)])


def _indirect(name: str, index: str | None, operation: str, line: int, shell: Shell, text: Text) -> Found:
    if index in ("@", "*") and name in shell.variables:
        return Found([(Segment(key, line, shell.file),) for key in shell.variables[name].elements], listed=True)
    value = shell.get(name)
    if value is None or not known(value) or not text_of(value).isidentifier():
        return unknown(f"!{name}", line, shell)
    return parameter(text_of(value) + operation, line, shell, text)


_DEFAULT = re.compile(r"(:?)([-=+?])(.*)$", re.DOTALL)


def _operated(raw: str, operation: str, stored: list[Value] | None, line: int, shell: Shell, text: Text, *, listed: bool) -> Found:
    if match := _DEFAULT.match(operation):
        return _defaulted(raw, match, stored, line, shell, text, listed=listed)
    if stored is not None and (made := _replaced(stored, operation, text)) is not None:
        return Found(made, listed=listed)
    if stored is None or not all(map(known, stored)):
        return unknown(raw, line, shell)
    if match := re.match(r":\s*(-?\d+)(?::(-?\d+))?$", operation):
        return Found(_sliced(stored, match, listed=listed), listed=listed)
    changed = [(new, value) for value in stored if (new := _changed(value, operation, text)) is not None]
    return unknown(raw, line, shell) if len(changed) < len(stored) else Found([_resting(*each) for each in changed], listed=listed)


def _defaulted(raw: str, match: re.Match[str], stored: list[Value] | None, line: int, shell: Shell, text: Text, *, listed: bool) -> Found:
    colon, sign, word = match.groups()
    missing = not stored or (bool(colon) and not any(text_of(value) for value in stored))
    name = re.sub(r"\W.*", "", raw, flags=re.DOTALL)
    if sign == "+":
        shell.budget.absent |= missing and _may_be_given(name, shell)
        return Found([]) if missing else Found([text(word)])
    if not missing:
        return Found(stored or [], listed=listed)
    if sign == "?":
        return unknown(name, line, shell)
    value = text(word)
    if shell.unseen and stored is None:
        where = f"{shell.file}:{line}" if shell.file else f"line {line}"
        doubt = f"{where}: what is not at hand may give {name} another value"
        value = tuple(segment._replace(doubt=doubt) for segment in value)
    elif _may_be_given(name, shell):
        shell.budget.absent |= not text_of(value)
        value = tuple(segment._replace(assumed=name) for segment in value)
    if sign == "=":
        shell.set(name, value)
    return Found([value] if value else [])


def _may_be_given(name: str, shell: Shell) -> bool:
    """Whether an image may set a variable that nothing at hand sets."""
    return shell.imaged and name.isidentifier() and name not in shell.variables


def _sliced(stored: list[Value], match: re.Match[str], *, listed: bool) -> list[Value]:
    start, count = int(match[1]), match[2]
    end = None if count is None else int(count) if int(count) < 0 else (start if start >= 0 else 0) + int(count)
    if listed:
        # ${@:2} counts arguments from 1, an array from 0; arguments are asked for from 1 on
        return stored[start:end]
    cut = [(Segment(text_of(value)[start:end], value[0].line, value[0].file),) if value else value for value in stored]
    return [_resting(new, value) for new, value in zip(cut, stored, strict=True)]


def _resting(made: Value, value: Value) -> Value:
    """What is made of a value that rests on a variable of an image rests on it too."""
    assumed = assumed_in(value)
    return tuple(segment._replace(assumed=assumed) for segment in made) if assumed else made


_REMOVALS = {"##": (True, True), "#": (True, False), "%%": (False, True), "%": (False, False)}
_CASES: dict[str, Callable[[str], str]] = {
    "^^": str.upper,
    ",,": str.lower,
    "^": lambda text: text[:1].upper() + text[1:],
    ",": lambda text: text[:1].lower() + text[1:],
}


def _changed(value: Value, operation: str, text: Text) -> Value | None:
    """A value with a pattern taken away or replaced, or in another case."""
    content = text_of(value)
    line, file = (value[0].line, value[0].file) if value else (0, "")
    if operation in _CASES:
        return (Segment(_CASES[operation](content), line, file),)
    if len(content) > LONGEST_MATCHED:
        return None
    for sign, (front, longest) in _REMOVALS.items():
        if operation.startswith(sign):
            pattern = text_of(text(operation.removeprefix(sign)))
            return (Segment(_without(content, pattern, front=front, longest=longest), line, file),)
    if operation.startswith("/"):
        pattern, _, replacement = operation.lstrip("/").partition("/")
        regex = _regex(text_of(text(pattern)))
        new = text_of(text(replacement))
        return (Segment(re.sub(regex, lambda _: new, content, count=0 if operation.startswith("//") else 1), line, file),)
    return None


def _replaced(stored: list[Value], operation: str, text: Text) -> list[Value] | None:
    """`//pattern/text` where the pattern is no more than a text, segment by segment: a long list of flags keeps the places of its words and
    what is not known of it. None for any other operation."""
    pattern, _, replacement = operation.removeprefix("//").partition("/")
    old = text_of(text(pattern)) if operation.startswith("//") else ""
    if not old or len(old) > LONGEST_PATTERN or re.search(r"[*?\[\\\\]", old):
        return None
    new = text_of(text(replacement))
    if len(new) > len(old) and len(new) > LONGEST_PATTERN:
        return None
    return [tuple(each._replace(text=each.text.replace(old, new)) if each.known else each for each in value) for value in stored]


def _without(content: str, pattern: str, *, front: bool, longest: bool) -> str:
    if len(pattern) > LONGEST_PATTERN:
        return content
    whole = re.compile(fnmatch.translate(pattern), re.DOTALL)
    cuts = range(len(content) + 1)
    for cut in reversed(cuts) if front == longest else cuts:
        piece, rest = (content[:cut], content[cut:]) if front else (content[cut:], content[:cut])
        if whole.match(piece):
            return rest
    return content


def _regex(pattern: str) -> str:
    """A pattern as a regular expression for a part of a text; `*` takes as much as it can."""
    pattern = re.sub(r"\\(.)", r"\1", pattern[:LONGEST_PATTERN], flags=re.DOTALL)
    return re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".") if pattern.count("*") < 4 else re.escape(pattern)
