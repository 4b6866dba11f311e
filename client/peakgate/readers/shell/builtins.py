"""Assignments, and the builtins that assign."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from peakgate.readers.shell.expand import fields_of, text_value
from peakgate.readers.shell.tokens import TEXT, Part, RawWord
from peakgate.readers.shell.values import Segment, Shell, Value, Variable, doubted, text_of

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=", re.DOTALL)
_KEYED = re.compile(r"\[([^\]]+)\]=")
MOST_ELEMENTS = 100_000


def assignment_of(word: RawWord) -> re.Match[str] | None:
    """The match of `NAME=`, `NAME+=` or `NAME[key]=` at the beginning of a word."""
    if not word.parts or word.parts[0].kind != TEXT or word.parts[0].quoted:
        return None
    return _ASSIGNMENT.match(word.parts[0].text)


def assign(word: RawWord, shell: Shell, *, exported: bool = False) -> None:
    """Does an assignment."""
    match = assignment_of(word)
    if match is None:
        return
    name, key, plus = match.groups()
    if word.array is not None:
        elements = _elements(word.array, shell)
        before = shell.variables.get(name) if plus else None
        if before is not None:
            taken = len(before.elements)
            shell.budget.spend(characters=8 * taken)
            renamed = {(str(taken + at) if index.isdigit() else index): value for at, (index, value) in enumerate(elements.items())}
            elements = {**before.elements, **renamed}
        kept = before or Variable()
        made = Variable(dict(list(elements.items())[:MOST_ELEMENTS]), array=True, exported=exported)
        shell.variables[name] = replace(made, doubt=kept.doubt, assumed=kept.assumed)
        return
    first = word.parts[0]
    rest = [Part(TEXT, first.text[match.end() :], False, first.line), *word.parts[1:]]
    value = text_value(rest, shell)
    if key is not None:
        variable = shell.variables.get(name, Variable(array=True))
        shell.budget.spend(characters=8 * len(variable.elements))
        elements = {**variable.elements, key.strip("\"'"): value}
        shell.variables[name] = replace(variable, elements=elements, array=True)
        return
    if plus and (before_value := _plain(name, shell)) is not None:
        value = _appended(before_value, value, shell)
    shell.set(name, value, exported=exported)


def _plain(name: str, shell: Shell) -> Value | None:
    variable = shell.variables.get(name)
    value = variable.elements.get("0") if variable is not None else None
    return doubted(value, variable) if variable is not None and value is not None else None


def _appended(before: Value, value: Value, shell: Shell) -> Value:
    shell.budget.spend(characters=len(before) + len(value))
    return before + value


def _elements(words: list[RawWord], shell: Shell) -> dict[str, Value]:
    keyed: dict[str, Value] = {}
    plain: list[RawWord] = []
    for word in words:
        match = _KEYED.match(word.parts[0].text) if word.parts and not word.parts[0].quoted and word.parts[0].kind == TEXT else None
        if match:
            first = word.parts[0]
            keyed[match[1].strip("\"'")] = text_value([Part(TEXT, first.text[match.end() :], False, first.line), *word.parts[1:]], shell)
        else:
            plain.append(word)
    return keyed or {str(index): value for index, value in enumerate(fields_of(plain, shell))}


def _declare(words: list[RawWord], shell: Shell, *, exported: bool = False) -> None:
    for word in words:
        if assignment_of(word) is not None:
            assign(word, shell, exported=exported)
            continue
        for value in fields_of([word], shell):
            name, joined, given = text_of(value).partition("=")
            if joined and name.isidentifier():  # export $(cat settings), export "NAME=value"
                shell.set(name, (Segment(given, value[0].line if value else 0, shell.file),), exported=exported)
            elif exported and name in shell.variables:
                before = shell.variables[name]
                shell.variables[name] = replace(before, exported=True)
            elif name == "-x":
                exported = True


ASSIGNING: dict[str, Callable[[list[RawWord], Shell], None]] = {
    "export": lambda words, shell: _declare(words, shell, exported=True),
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "readonly": _declare,
}
