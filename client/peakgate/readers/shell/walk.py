"""A script in the order of a run, without running it: what it sets, and the commands that it would start."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from peakgate.readers.arguments import Word
from peakgate.readers.files import FileError, Files
from peakgate.readers.settings import Settings
from peakgate.readers.shell.builtins import ASSIGNING, assign, assignment_of
from peakgate.readers.shell.conditions import Asked, decided
from peakgate.readers.shell.expand import fields_of, sum_of, text_value
from peakgate.readers.shell.ignored import IGNORED, SOURCED
from peakgate.readers.shell.lexer import parts_of
from peakgate.readers.shell.merge import merge_branches
from peakgate.readers.shell.parser import parse
from peakgate.readers.shell.script_files import ScriptFiles, placed
from peakgate.readers.shell.tokens import (
    AndOr,
    Arithmetic,
    Block,
    Case,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    RawWord,
    Redirect,
    Simple,
)
from peakgate.readers.shell.values import (
    DEEPEST_CALL,
    Segment,
    Shell,
    Value,
    known,
    shell_of,
    text_of,
    variable_stated,
    word_of,
)

TRUE, FALSE, UNKNOWN, STARTED = "true", "false", "unknown", "started"
"""How a command ends: as a test that is decided, as one that is not, as a program of which success is assumed."""

MOST_STARTED = 500
MOST_TURNS = 100
"""Of a loop over the script's own arguments."""


@dataclass(slots=True)
class Started:
    """A command that a script would start."""

    words: Sequence[Word]
    environment: Settings
    files: Files
    shell: Shell
    warnings: list[str] = field(default_factory=list)


class _Left(Exception):
    """The script, a function or a loop is left."""

    def __init__(self, kind: str, *, failed: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.failed = kind, failed


def started_by(text: str, files: Files, shell: Shell, line: int = 1) -> list[Started]:
    """The commands of a script or a command line that may train, in order. Raises FileError for what no script is."""
    walk = _Walk(files, shell)
    if shell.depth > DEEPEST_CALL:
        raise FileError("starts scripts that start scripts without end")
    try:
        walk.block(parse(text.replace("\r\n", "\n"), line))
    except _Left:
        pass
    except RecursionError as error:
        raise FileError("nests deeper than a launch script does") from error
    return walk.found


class _Walk:
    def __init__(self, files: Files, shell: Shell, written: dict[str, str] | None = None) -> None:
        self.files, self.shell = files, shell
        self.written: dict[str, str] = {} if written is None else written
        self.found: list[Started] = []

    def seen(self) -> ScriptFiles:
        return ScriptFiles(self.files, self.shell.folder, posixpath.dirname(self.shell.file), self.written)

    def block(self, nodes: Block) -> str:
        status = TRUE
        for node in nodes:
            status = self.node(node)
        return status

    def node(self, node: Node) -> str:
        self.shell.budget.spend(commands=1)
        match node:
            case Simple():
                return self.simple(node)
            case AndOr():
                return self.and_or(node)
            case Pipeline():
                return self.pipeline(node)
            case If():
                return self.if_(node)
            case Loop():
                return self.loop(node)
            case Case():
                return self.case(node)
            case Group():
                return self.group(node)
            case Function():
                self.shell.functions[node.name] = node.body
                return TRUE
            case Arithmetic():
                return self.arithmetic(node)

    # -- control flow

    def and_or(self, node: AndOr) -> str:
        status = self.node(node.first)
        for connector, following in node.rest:
            if status == UNKNOWN:
                self.branches([[following]], may_skip=True)
            elif (connector == "&&") == (status != FALSE):
                status = self.unless_it_fails(following)
        return status

    def unless_it_fails(self, node: Node) -> str:
        """A node whose `exit 1` is passed over: that the job runs is given."""
        try:
            return self.node(node)
        except _Left as left:
            if not left.failed:
                raise
            return TRUE

    def pipeline(self, node: Pipeline) -> str:
        if len(node.nodes) == 1:
            status = self.node(node.nodes[0])
            return {TRUE: FALSE, FALSE: TRUE}.get(status, status) if node.negated else status
        for each in node.nodes:
            self.apart([each])
        written = next((_input(each) for each in node.nodes if isinstance(each, Simple) and _input(each) is not None), None)
        last = node.nodes[-1]
        if written is not None and isinstance(last, Simple):
            self.write(last, self.here_text(written))
        return UNKNOWN

    def apart(self, body: Block) -> str:
        """A body in a subshell."""
        outer, self.shell = self.shell, self.shell.copy()
        try:
            return self.block(body)
        except _Left:
            return TRUE
        finally:
            outer.doubts += self.shell.doubts
            self.shell = outer

    def group(self, node: Group) -> str:
        return self.apart(node.body) if node.subshell else self.block(node.body)

    def if_(self, node: If) -> str:
        candidates: list[Block] = []
        for test, body in node.arms:
            status = self.block(test)
            if status == TRUE:
                return self.chosen([*candidates, body], may_skip=False)
            if status != FALSE:
                candidates.append(body)
        last = [node.otherwise] if node.otherwise is not None else []
        return self.chosen([*candidates, *last], may_skip=node.otherwise is None)

    def case(self, node: Case) -> str:
        value = text_value(node.word.parts, self.shell)
        candidates: list[Block] = []
        for patterns, body in node.arms:
            texts = [text_of(text_value(pattern.parts, self.shell)) for pattern in patterns]
            if not known(value):
                candidates.append(body)
            elif any(fnmatch.fnmatchcase(text_of(value)[:1000], text[:200]) for text in texts):
                return self.chosen([body], may_skip=False)
        return self.chosen(candidates, may_skip=True)

    def chosen(self, bodies: list[Block], *, may_skip: bool) -> str:
        if len(bodies) == 1 and not may_skip:
            return self.unless_it_fails_in(bodies[0])
        if bodies:
            self.branches(bodies, may_skip=may_skip)
        return STARTED

    def unless_it_fails_in(self, body: Block) -> str:
        before = self.shell.copy()
        try:
            return self.block(body)
        except _Left as left:
            if not left.failed:
                raise
            self.shell.variables = before.variables
            return STARTED

    def branches(self, bodies: list[Block], *, may_skip: bool) -> None:
        """Bodies of which nobody knows which one runs: each from the same start, then what they agree on."""
        start, ends = self.shell, list[Shell]()
        for body in bodies:
            self.shell = start.copy()
            try:
                self.block(body)
            except _Left:
                continue
            finally:
                start.doubts += self.shell.doubts
            ends.append(self.shell)
        self.shell = start
        if ends:
            merge_branches(start, ends if not may_skip else [*ends, start.copy()])

    def loop(self, node: Loop) -> str:
        try:
            if node.kind in ("for", ""):
                return self.for_(node)
            for _ in range(MOST_TURNS):
                status, before = self.block(node.test), len(self.found)
                if status in (UNKNOWN, STARTED):
                    self.branches([node.body], may_skip=True)
                    break
                if (status == TRUE) == (node.kind == "until"):
                    break
                self.block(node.body)
                if len(self.found) > before:
                    break
        except _Left as left:
            if left.kind != "loop":
                raise
        return STARTED

    def for_(self, node: Loop) -> str:
        """A `for` with its first value: the runs of a sweep are alike, or are told apart by a file for each."""
        values = fields_of(node.words, self.shell) if node.words else list(self.shell.arguments or [])
        if node.words and not values:
            return STARTED
        if node.name:
            self.shell.set(node.name, values[0] if values else (Segment(f"${node.name}", 0, self.shell.file, known=False),))
        return self.block(node.body)

    def arithmetic(self, node: Arithmetic) -> str:
        name, sign, expression = node.text.partition("=")
        name = name.strip()
        if sign and name.rstrip("+-*/ ").isidentifier() and not expression.startswith("="):
            operation, name = name[len(name.rstrip("+-*/ ")) :].strip(), name.rstrip("+-*/ ")
            expression = f"{name}{operation}({expression})" if operation else expression
            self.set_sum(name, expression, node.line)
            return TRUE
        result = sum_of(node.text, node.line, self.shell)
        return UNKNOWN if result is None else TRUE if result else FALSE

    def set_sum(self, name: str, expression: str, line: int) -> None:
        result = sum_of(expression, line, self.shell)
        text = f"${name}" if result is None else str(result)
        self.shell.set(name, (Segment(text, line, self.shell.file, known=result is not None),))

    # -- commands

    def simple(self, node: Simple) -> str:
        assignments, at = [], 0
        while at < len(node.words) and assignment_of(node.words[at]) is not None:
            assignments.append(node.words[at])
            at += 1
        words = node.words[at:]
        if not words:
            for word in assignments:
                assign(word, self.shell)
            return TRUE
        name = words[0].plain
        if name in ASSIGNING:
            ASSIGNING[name](words[1:], self.shell)
            return TRUE
        if name in ("[", "[["):
            return self.test(words[1:-1] if words[-1].plain in ("]", "]]") else words[1:])
        if name == "test":
            return self.test(words[1:])
        return self.command(node, assignments, fields_of(words, self.shell))

    def test(self, words: list[RawWord]) -> str:
        asked: list[Asked] = []
        for word in words:
            value = text_value(word.parts, self.shell)
            unset = [
                segment for segment in value if not segment.known and segment.text.startswith("$") and not segment.text.startswith("$(")
            ]
            is_unset = bool(unset) and all(self.is_unset(segment.text) for segment in unset)
            text = "".join(segment.text for segment in value if segment.known) if is_unset else text_of(value)
            asked.append(Asked(text, known(value) or is_unset, any(part.quoted for part in word.parts)))
        result = decided(asked, self.exists, lambda name: name in self.shell.variables)
        return UNKNOWN if result is None else TRUE if result else FALSE

    def is_unset(self, text: str) -> bool:
        """Whether a name is a variable that nothing sets: in a test it is empty, as it is where the job starts."""
        name = text.strip("${}")
        return name.isidentifier() and name not in self.shell.variables

    def exists(self, path: str) -> bool:
        if self.seen().is_folder(path):
            return True
        try:
            self.seen().text(path)
        except FileError:
            return False
        return True

    def command(self, node: Simple, assignments: list[RawWord], fields: list[Value]) -> str:
        while fields and not known(fields[0]) and len(fields) > 1:
            fields = fields[1:]  # a launcher by a variable that nobody set
        if not fields:
            self.write(node, "")
            return TRUE
        name = text_of(fields[0])
        if name in _BUILTINS:
            return _BUILTINS[name](self, fields[1:])
        if name in self.shell.functions:
            return self.call(self.shell.functions[name], fields[1:])
        if posixpath.basename(name) in IGNORED:
            self.write(node, self.output(node, name, fields[1:]))
            return UNKNOWN if name in ("grep", "which", "nvidia-smi", "pgrep") else STARTED
        self.start(node, assignments, fields)
        return STARTED

    def start(self, node: Simple, assignments: list[RawWord], fields: list[Value]) -> None:
        shell = self.shell.copy()
        for word in assignments:
            assign(word, shell, exported=True)
        warnings = []
        if text_of(fields[0]).startswith("-"):
            if node.cut and self.found:
                where = f"{self.shell.file}:{node.line}" if self.shell.file else f"line {node.line}"
                self.found[-1].warnings.append(f"{where}: a comment ends the command before {text_of(fields[0])}, which is no part of it")
            return
        warnings += [
            f"{doubt}: a branch that cannot be decided here sets what this command uses" for doubt in dict.fromkeys(self.shell.doubts)
        ]
        self.shell.doubts.clear()
        if len(self.found) < MOST_STARTED:
            self.found.append(Started([word_of(field) for field in fields], shell.environment(), self.seen(), shell, warnings))

    def call(self, body: Node, arguments: list[Value]) -> str:
        if self.shell.depth >= DEEPEST_CALL:
            return UNKNOWN
        before, self.shell.arguments = self.shell.arguments, arguments
        self.shell.depth += 1
        try:
            return self.node(body)
        except _Left as left:
            if left.kind != "function":
                raise
            return FALSE if left.failed else TRUE
        finally:
            self.shell.arguments = before
            self.shell.depth -= 1

    # -- files

    def here_text(self, redirect: Redirect) -> str:
        if redirect.here is None:
            return text_of(text_value(redirect.target.parts, self.shell)) + "\n" if redirect.target else ""
        if redirect.here.literal:
            return redirect.here.text
        return text_of(text_value(parts_of(redirect.here.text, redirect.here.line), self.shell))

    def output(self, node: Simple, name: str, arguments: list[Value]) -> str:
        """What `cat` copies from a here-document, and what `echo` writes."""
        here = _input(node)
        if here is not None:
            return self.here_text(here)
        if name in ("echo", "printf"):
            return " ".join(text_of(value) for value in arguments if text_of(value) not in ("-e", "-n")) + "\n"
        return ""

    def write(self, node: Simple, text: str) -> None:
        """Notes a file that a command writes."""
        paths = [
            (redirect.target, redirect.operator == ">>") for redirect in node.redirects if redirect.operator in (">", ">>", ">|", "&>")
        ]
        if node.words and node.words[0].plain == "tee":
            paths += [(word, any(each.plain == "-a" for each in node.words)) for word in node.words[1:] if not word.plain.startswith("-")]
        for target, appended in paths:
            if target is None or not text:
                continue
            path = placed(text_of(text_value(target.parts, self.shell)), self.shell.folder)
            self.shell.budget.spend(characters=len(text))
            self.written[path] = (self.written.get(path, "") if appended else "") + text


def _input(node: Simple) -> Redirect | None:
    return next((redirect for redirect in node.redirects if redirect.here is not None or redirect.operator == "<<<"), None)


# -- builtins that move the walk itself


def _source(walk: _Walk, arguments: list[Value]) -> str:
    if not arguments or posixpath.basename(text_of(arguments[0])) in SOURCED:
        return STARTED
    path, shell = text_of(arguments[0]), walk.shell
    if shell.depth >= DEEPEST_CALL:
        raise FileError("starts scripts that start scripts without end")
    try:
        text = walk.seen().text(path)
    except FileError:
        return STARTED
    file, before = shell.file, shell.arguments
    shell.file, shell.depth = path, shell.depth + 1
    shell.arguments = arguments[1:] or before
    try:
        walk.block(parse(text.replace("\r\n", "\n")))
    except _Left as left:
        if left.kind != "function":
            raise
    finally:
        walk.shell.file, walk.shell.depth, walk.shell.arguments = file, walk.shell.depth - 1, before
    return STARTED


def _eval(walk: _Walk, arguments: list[Value]) -> str:
    if not arguments or walk.shell.depth >= DEEPEST_CALL:
        return TRUE
    walk.shell.depth += 1
    try:
        line = arguments[0][0].line if arguments[0] else 1
        return walk.block(parse(" ".join(map(text_of, arguments)), line))
    finally:
        walk.shell.depth -= 1


def _cd(walk: _Walk, arguments: list[Value]) -> str:
    targets = [value for value in arguments if not text_of(value).startswith("-")]
    if targets and known(targets[0]):
        walk.shell.folder = placed(text_of(targets[0]), walk.shell.folder)
    return STARTED


def _leave(kind: str) -> Callable[[_Walk, list[Value]], str]:
    def leave(_: _Walk, arguments: list[Value]) -> str:
        code = text_of(arguments[0]) if arguments else "0"
        raise _Left(kind, failed=code != "0")

    return leave


def _set(walk: _Walk, arguments: list[Value]) -> str:
    texts = [text_of(value) for value in arguments]
    if texts[:1] == ["-a"] or texts[:2] == ["-o", "allexport"]:
        walk.shell.all_exported = True
    if texts[:1] == ["+a"] or texts[:2] == ["+o", "allexport"]:
        walk.shell.all_exported = False
    if "--" in texts:
        walk.shell.arguments = arguments[texts.index("--") + 1 :]
    return TRUE


def _shift(walk: _Walk, arguments: list[Value]) -> str:
    count = text_of(arguments[0]) if arguments else "1"
    if walk.shell.arguments is not None and count.isdigit() and len(count) < 6:
        walk.shell.arguments = walk.shell.arguments[int(count) :]
    return TRUE


def _read(walk: _Walk, arguments: list[Value]) -> str:
    for value in arguments:
        name = text_of(value)
        if name.isidentifier():
            walk.shell.set(name, (Segment(f"${name}", 0, walk.shell.file, known=False),))
    return UNKNOWN


def _let(walk: _Walk, arguments: list[Value]) -> str:
    for value in arguments:
        walk.arithmetic(Arithmetic(text_of(value), value[0].line if value else 0))
    return TRUE


def _unset(walk: _Walk, arguments: list[Value]) -> str:
    for value in arguments:
        walk.shell.variables.pop(text_of(value), None)
    return TRUE


_BUILTINS: dict[str, Callable[[_Walk, list[Value]], str]] = {
    "source": _source,
    ".": _source,
    "eval": _eval,
    "cd": _cd,
    "pushd": _cd,
    "exit": _leave("script"),
    "return": _leave("function"),
    "break": _leave("loop"),
    "continue": _leave("loop"),
    "set": _set,
    "shift": _shift,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "let": _let,
    "unset": _unset,
    "true": lambda walk, arguments: TRUE,
    "false": lambda walk, arguments: FALSE,
    ":": lambda walk, arguments: TRUE,
    "shopt": lambda walk, arguments: TRUE,
    "command": lambda walk, arguments: (
        UNKNOWN if arguments and text_of(arguments[0]).startswith("-") else walk.command(Simple([], [], 0), [], arguments)
    ),
    "getopts": lambda walk, arguments: FALSE,
}

__all__ = ["Started", "shell_of", "started_by", "variable_stated"]
