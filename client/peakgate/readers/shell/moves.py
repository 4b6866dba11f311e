"""Builtins that change where a walk is, what it knows, or where it goes on."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from peakgate.readers.files import FileError
from peakgate.readers.shell.ignored import SOURCED
from peakgate.readers.shell.parser import parse
from peakgate.readers.shell.script_files import placed
from peakgate.readers.shell.tokens import Arithmetic
from peakgate.readers.shell.values import DEEPEST_CALL, Segment, Value, known, text_of
from peakgate.readers.shell.walking import FALSE, FUNCTION, LOOP, SCRIPT, STARTED, TRUE, UNKNOWN, LeftError, Walking


def _source(walk: Walking, arguments: list[Value]) -> str:
    if not arguments or posixpath.basename(text_of(arguments[0])) in SOURCED:
        return STARTED
    path, shell = text_of(arguments[0]), walk.shell
    if shell.depth >= DEEPEST_CALL:
        raise FileError("starts scripts that start scripts without end")
    try:
        text = walk.seen().text(path)
    except FileError:
        shell.unseen = True
        return STARTED
    file, before = shell.file, shell.arguments
    shell.file, shell.depth = path, shell.depth + 1
    shell.arguments = arguments[1:] or before
    try:
        walk.block(parse(text.replace("\r\n", "\n")))
    except LeftError as left:
        if left.kind != FUNCTION:
            raise
    finally:
        walk.shell.file, walk.shell.depth, walk.shell.arguments = file, walk.shell.depth - 1, before
    return STARTED


def _eval(walk: Walking, arguments: list[Value]) -> str:
    if not arguments or walk.shell.depth >= DEEPEST_CALL:
        return TRUE
    walk.shell.depth += 1
    try:
        line = arguments[0][0].line if arguments[0] else 1
        return walk.block(parse(" ".join(map(text_of, arguments)), line))
    finally:
        walk.shell.depth -= 1


def _cd(walk: Walking, arguments: list[Value]) -> str:
    targets = [value for value in arguments if not text_of(value).startswith("-")]
    if targets and known(targets[0]):
        walk.shell.folder = placed(text_of(targets[0]), walk.shell.folder)
    return STARTED


def _leave(kind: str) -> Callable[[Walking, list[Value]], str]:
    def leave(_: Walking, arguments: list[Value]) -> str:
        code = text_of(arguments[0]) if arguments else "0"
        raise LeftError(kind, failed=code != "0")

    return leave


def _set(walk: Walking, arguments: list[Value]) -> str:
    texts = [text_of(value) for value in arguments]
    if texts[:1] == ["-a"] or texts[:2] == ["-o", "allexport"]:
        walk.shell.all_exported = True
    if texts[:1] == ["+a"] or texts[:2] == ["+o", "allexport"]:
        walk.shell.all_exported = False
    if "--" in texts:
        walk.shell.arguments = arguments[texts.index("--") + 1 :]
    return TRUE


def _shift(walk: Walking, arguments: list[Value]) -> str:
    count = text_of(arguments[0]) if arguments else "1"
    if walk.shell.arguments is not None and count.isdigit() and len(count) < 6:
        walk.shell.arguments = walk.shell.arguments[int(count) :]
    return TRUE


def _read(walk: Walking, arguments: list[Value]) -> str:
    for value in arguments:
        name = text_of(value)
        if name.isidentifier():
            walk.shell.set(name, (Segment(f"${name}", 0, walk.shell.file, known=False),))
    return UNKNOWN


def _let(walk: Walking, arguments: list[Value]) -> str:
    for value in arguments:
        walk.arithmetic(Arithmetic(text_of(value), value[0].line if value else 0))
    return TRUE


def _unset(walk: Walking, arguments: list[Value]) -> str:
    for value in arguments:
        walk.shell.variables.pop(text_of(value), None)
    return TRUE


def _trap(walk: Walking, arguments: list[Value]) -> str:
    """What `trap … ERR` starts runs in the place of what fails."""
    if len(arguments) > 1 and any(text_of(value).upper() in ("ERR", "SIGERR") for value in arguments[1:]):
        walk.on_failure(arguments[0])
    return TRUE


def _ends(status: str) -> Callable[[Walking, list[Value]], str]:
    def end(_: Walking, __: list[Value]) -> str:
        return status

    return end


def _command(walk: Walking, arguments: list[Value]) -> str:
    """`command program …`, which runs it; `command -v program` asks for it."""
    asked = not arguments or text_of(arguments[0]).startswith("-")
    return UNKNOWN if asked else walk.run(arguments)


MOVES: dict[str, Callable[[Walking, list[Value]], str]] = {
    "source": _source,
    ".": _source,
    "eval": _eval,
    "cd": _cd,
    "pushd": _cd,
    "exit": _leave(SCRIPT),
    "return": _leave(FUNCTION),
    "break": _leave(LOOP),
    "continue": _leave(LOOP),
    "set": _set,
    "shift": _shift,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "let": _let,
    "unset": _unset,
    "true": _ends(TRUE),
    ":": _ends(TRUE),
    "shopt": _ends(TRUE),
    "false": _ends(FALSE),
    "getopts": _ends(FALSE),
    "command": _command,
    "trap": _trap,
}
