"""The builtin `read` with a text at hand: which variable gets which part of it."""

from __future__ import annotations

from peakgate.readers.shell.builtins import assignment_of
from peakgate.readers.shell.expand import text_value
from peakgate.readers.shell.tokens import TEXT, Part, RawWord, Simple
from peakgate.readers.shell.values import Segment, Shell, Value, Variable, known, text_of

BLANK = " \t\n"
MOST_PARTS = 1000
VALUED = ("-d", "-i", "-n", "-N", "-p", "-t", "-u")


def read_into(node: Simple, arguments: list[Value], given: Value, shell: Shell) -> None:
    """`IFS=, read -r A B <<< "$TEXT"`: the last name takes what is left; `-a NAME` is an array of all parts."""
    words = [text_of(value) for value in arguments]
    names = [word for at, word in enumerate(words) if word.isidentifier() and (not at or words[at - 1] not in VALUED)]
    is_array = any(word.startswith("-") and word.endswith("a") for word in words)
    if len(names) == 1 and not is_array:
        shell.set(names[0], given)
        return
    if not names or not known(given):
        return
    separators = _separators(node.words, shell)
    parts = _parts(text_of(given).strip(BLANK), separators, MOST_PARTS if is_array else len(names))
    first = given[0] if given else Segment("", 0, shell.file)
    values = [(first._replace(text=part),) for part in parts]
    if is_array:
        shell.variables[names[0]] = Variable({str(at): value for at, value in enumerate(values)}, array=True)
        return
    for at, name in enumerate(names):
        shell.set(name, values[at] if at < len(values) else (first._replace(text=""),))


def _separators(words: list[RawWord], shell: Shell) -> str:
    """IFS in front of the command, or as it is set."""
    for word in words:
        match = assignment_of(word)
        if match is None:
            break
        if match[1] == "IFS":
            first = word.parts[0]
            return text_of(text_value([Part(TEXT, first.text[match.end() :], False, first.line), *word.parts[1:]], shell))
    own = shell.get("IFS")
    return text_of(own) if own is not None else BLANK


def _parts(text: str, separators: str, most: int) -> list[str]:
    if not separators.strip(BLANK):
        return text.split(None, most - 1)
    mark, *others = (each for each in separators if each not in BLANK)
    for other in others:
        text = text.replace(other, mark)
    return text.split(mark, most - 1)
