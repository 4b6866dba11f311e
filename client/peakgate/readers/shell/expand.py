"""Raw words into the words that a command gets: expansions and field splitting (Bash's manual, 3.5); nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from peakgate.readers.files import FileError
from peakgate.readers.shell.arithmetic import arithmetic
from peakgate.readers.shell.lexer import parts_of
from peakgate.readers.shell.parameter import Found, parameter
from peakgate.readers.shell.substitute import substituted
from peakgate.readers.shell.tokens import ARITHMETIC, COMMAND, TEXT, Part, RawWord
from peakgate.readers.shell.values import Segment, Shell, Value, assumed_in, known, text_of

DEEPEST = 12
"""Of `${A:-${B:-…}}`."""

OF_A_SEGMENT = 20
"""What a piece of text costs beside its characters."""

_PIECE = re.compile(r"[^ \t\n]+|[ \t\n]+")


def fields_of(words: Iterable[RawWord], shell: Shell) -> list[Value]:
    """The words that a command gets."""
    fields: list[Value] = []
    for word in words:
        parts = word.parts
        if len(parts) == 1 and parts[0].kind == TEXT:
            fields.append((Segment(parts[0].text, parts[0].line, shell.file),))
        elif word.array is None:
            fields += _Fields(shell).of(parts)
    return fields


def text_value(parts: Sequence[Part], shell: Shell, depth: int = 0) -> Value:
    """The text of parts without splitting it: what stands behind `=`, in a here-document, in a pattern."""
    found: list[Segment] = []
    for part in parts:
        if part.kind == TEXT:
            found.append(Segment(part.text, part.line, shell.file))
        else:
            for value in _expanded(part, shell, depth).values:
                found += value
    return _fewest(found, shell)


def _fewest(segments: list[Segment], shell: Shell) -> Value:
    """Segments without empty ones, and paid for."""
    shell.budget.spend(characters=sum(len(segment.text) + OF_A_SEGMENT for segment in segments))
    return tuple(segment for segment in segments if segment.text) or tuple(segments[:1])


class _Fields:
    """Fields that parts of one word grow into."""

    def __init__(self, shell: Shell) -> None:
        self.shell, self.done, self.open = shell, list[Value](), list[Segment]()
        self.begun = False

    def of(self, parts: Sequence[Part]) -> list[Value]:
        for part in parts:
            if part.kind == TEXT:
                self.add(Segment(part.text, part.line, self.shell.file))
                continue
            found = _expanded(part, self.shell, 0)
            self.listed(found) if part.quoted else self.split(found)
        self.close()
        return self.done

    def add(self, segment: Segment) -> None:
        self.open.append(segment)
        self.begun = True

    def close(self) -> None:
        if self.begun:
            self.done.append(_fewest(self.open, self.shell))
        self.open, self.begun = [], False

    def listed(self, found: Found) -> None:
        """`"${ARRAY[@]}"`: a word for each; another value stays one."""
        if found.listed and not found.values and not any(segment.text for segment in self.open):
            self.open, self.begun = [], False  # "$@" without arguments is no word
        for index, value in enumerate(found.values):
            if index and found.listed:
                self.close()
            self.open += value
            self.begun = True

    def split(self, found: Found) -> None:
        """An expansion without quotes: blanks separate words, and what is empty is none."""
        for index, value in enumerate(found.values):
            if index:
                self.close()
            for segment in value:
                if not segment.known:
                    self.add(segment)
                    continue
                line = segment.line
                for piece in _PIECE.findall(segment.text):
                    if piece[0] in " \t\n":
                        self.close()
                        line += piece.count("\n")
                    else:
                        self.add(segment._replace(text=piece, line=line))


def _expanded(part: Part, shell: Shell, depth: int) -> Found:
    if depth > DEEPEST:
        raise FileError("nests deeper than a launch script does")
    if part.kind == COMMAND:
        return Found(substituted(part.text, part.line, shell, fields_of))
    if part.kind == ARITHMETIC:
        result = sum_of(part.text, part.line, shell, depth)
        known_result = result is not None
        text = str(result) if known_result else f"$(({part.text[:80]}))"
        return Found([(Segment(text, part.line, shell.file, known=known_result, assumed=rests_on(part.text, part.line, shell, depth)),)])
    return parameter(part.text, part.line, shell, lambda raw: text_value(_inner(raw, part.line), shell, depth + 1))


def _inner(raw: str, line: int) -> list[Part]:
    """The parts of what stands behind an operator, whose quotes fall away."""
    if "$" not in raw and "`" not in raw and "\\" not in raw:
        text = raw[1:-1] if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'" else raw
        return [Part(TEXT, text.replace('"', ""), True, line)]
    return [part for part in parts_of(raw, line) if part.text != '"']


def sum_of(text: str, line: int, shell: Shell, depth: int = 0) -> int | None:
    """The result of `$(( … ))`, or None."""
    if "{" in text or "$(" in text:
        value = text_value(parts_of(text, line), shell, depth + 1)
        text = text_of(value) if known(value) else ""
    return arithmetic(text, lambda name: _number(name, shell))


def rests_on(text: str, line: int, shell: Shell, depth: int = 0) -> str:
    """The variable of an image that a sum rests on."""
    if not shell.imaged:
        return ""
    values = [shell.get(name) for name in re.findall(r"[A-Za-z_]\w*", text)[:DEEPEST]]
    values += [text_value(parts_of(text, line), shell, depth + 1)] if "{" in text else []
    return next((found for value in values if value is not None and (found := assumed_in(value))), "")


def _number(name: str, shell: Shell) -> int | None:
    value = shell.arguments[int(name) - 1] if name.isdigit() and shell.arguments and int(name) <= len(shell.arguments) else shell.get(name)
    text = text_of(value).strip() if value is not None and known(value) else ""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None
