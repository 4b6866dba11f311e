"""Simple commands of a script: assignments, tests, builtins, functions, files that are written, programs that are started."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field

from peakgate.readers.arguments import Word
from peakgate.readers.files import FileError, Files
from peakgate.readers.settings import Settings
from peakgate.readers.shell.builtins import ASSIGNING, assign, assignment_of
from peakgate.readers.shell.conditions import Asked, decided
from peakgate.readers.shell.expand import fields_of, text_value
from peakgate.readers.shell.ignored import IGNORED
from peakgate.readers.shell.lexer import parts_of
from peakgate.readers.shell.moves import MOVES
from peakgate.readers.shell.reads import read_into
from peakgate.readers.shell.script_files import ScriptFiles, placed
from peakgate.readers.shell.tokens import Arithmetic, Block, Node, RawWord, Redirect, Simple
from peakgate.readers.shell.values import DEEPEST_CALL, Segment, Shell, Value, Variable, assumed_in, known, text_of, word_of
from peakgate.readers.shell.walking import FALSE, FUNCTION, STARTED, TRUE, UNKNOWN, LeftError

PROGRAM, EXEC = ".py", "exec"


@dataclass(slots=True)
class Started:
    """A command that a script would start."""

    words: Sequence[Word]
    environment: Settings
    files: Files
    warnings: list[str] = field(default_factory=list)
    unsure: dict[str, Variable] = field(default_factory=dict)
    """Exported variables of which a part is not known."""
    may_not_run: bool = False
    """It stands in a branch, and whether that is taken is not known; another launch runs in its place when it fails; or a word of it may be
    another one, as may the program: the script writes or edits it."""
    may_come_too_late: bool = False
    """Another launch stands before it, and a branch between them may end the script."""
    otherwise: Started | None = None
    """The same with what rests on variables that an image may set not known."""

    @property
    def key(self) -> tuple[tuple[str, ...], frozenset[tuple[str, str]]]:
        """Its words and its variables: two launches with one key are the same launch twice."""
        variables = frozenset((name, stated.text) for name, stated in self.environment.leaves.items())
        return tuple(word.text for word in self.words), variables


class Commands:
    """What a walk does with one command; the walk adds the control flow."""

    def __init__(self, files: Files, shell: Shell) -> None:
        self.files, self.shell = files, shell
        self.written: dict[str, str] = {}
        self.found: list[Started] = []
        self.edited: set[str] = set()
        """Programs that the script writes or edits itself: what they do is no more what their name says. Other files that it writes from
        what an image may set."""
        self.asked = ""
        """How the launch before a test of `$?` ended for that test to hold; empty: no such test."""
        self.stays = False
        """Whether a loop is walked as if nothing ended it."""
        self.trapped: tuple[int, list[Started]] = (0, [])
        """What runs in the place of a launch that fails, and from which one on."""
        self.may_have_ended = False
        """Whether a branch may have ended the script behind a launch."""
        self.gone = False
        """Whether an image may end the script before what follows."""
        self.assumed = ""
        """The variable of an image by which a test may end in another way."""

    def node(self, node: Node) -> str:
        """Goes through one node."""
        raise NotImplementedError

    def block(self, nodes: Block) -> str:
        """Goes through nodes in order."""
        raise NotImplementedError

    def arithmetic(self, node: Arithmetic) -> str:
        """Does `(( … ))`."""
        raise NotImplementedError

    def seen(self) -> ScriptFiles:
        """The files as the script sees them here."""
        return ScriptFiles(self.files, self.shell.folder, posixpath.dirname(self.shell.file), self.written)

    def on_failure(self, command: Value) -> None:
        """Notes what runs when a command fails."""
        raise NotImplementedError

    def run(self, fields: list[Value]) -> str:
        """Does one command of expanded words."""
        return self.command(Simple([], [], 0), [], fields)

    def simple(self, node: Simple) -> str:
        """Does a command as it is written: assignments, a test, or words to expand. Returns how it ends (walking.py)."""
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
        self.shell.budget.absent = False
        return self.command(node, assignments, fields_of(words, self.shell))

    def test(self, words: list[RawWord]) -> str:
        """What `[ … ]` of the words is; a variable that nothing sets is empty in it."""
        asked: list[Asked] = []
        empty = any(word.plain in ("-z", "-n") or not word.written for word in words)
        for word in words:
            value = text_value(word.parts, self.shell)
            unset = [
                segment for segment in value if not segment.known and segment.text.startswith("$") and not segment.text.startswith("$(")
            ]
            is_unset = bool(unset) and all(self.is_unset(segment.text, default=empty) for segment in unset)
            if self.shell.imaged and (rests := (unset[0].text.strip("${}") if is_unset else assumed_in(value))):
                self.assumed = rests
            text = "".join(segment.text for segment in value if segment.known) if is_unset else text_of(value)
            asked.append(Asked(text, known(value) or is_unset, any(part.quoted for part in word.parts)))
        if any("$?" in each.text for each in asked):
            self.asked = FALSE if any(each.text in ("-ne", "!=", "-gt", "-ge") for each in asked) else TRUE
        result = decided(asked, self.exists, lambda name: name in self.shell.variables)
        return UNKNOWN if result is None else TRUE if result else FALSE

    def is_unset(self, text: str, *, default: bool) -> bool:
        """Whether a name is a variable that nothing sets: in a test it is empty, as it is where the job starts. `default`: the test asks
        whether something is empty, so that an argument that nobody gave is, as in `${1:-default}`."""
        name = text.strip("${}")
        if name.isdigit():
            return default and self.shell.arguments is None
        return name.isidentifier() and name not in self.shell.variables and not self.shell.unseen

    def exists(self, path: str) -> bool:
        """Whether a file or folder is among those that the script sees."""
        if self.seen().is_folder(path):
            return True
        try:
            self.seen().text(path)
        except FileError:
            return False
        return True

    def command(self, node: Simple, assignments: list[RawWord], fields: list[Value]) -> str:
        """Does a command of expanded words: a move of the shell, a function, a tool that starts no training, or a start."""
        while len(fields) > 1 and fields[0] and not any(segment.known for segment in fields[0]):
            fields = fields[1:]  # a launcher by a variable that nobody set
        if not fields:
            self.write(node, "")
            return TRUE
        name = text_of(fields[0])
        if self.stays and [text_of(value) for value in fields] in (["break"], ["exit"], ["exit", "0"]):
            return TRUE
        if name in MOVES:
            status = MOVES[name](self, fields[1:])
            if name == "read" and (here := input_of(node)) is not None:
                read_into(node, fields[1:], self.here_value(here), self.shell)
            return status
        if name in self.shell.functions:
            return self.call(self.shell.functions[name], fields[1:])
        if posixpath.basename(name) in IGNORED:
            self.edit([text_of(value) for value in fields])
            self.write(node, self.output(node, name, fields[1:]))
            return UNKNOWN if name in ("grep", "which", "nvidia-smi", "pgrep") else STARTED
        self.start(node, assignments, self.given_script(node, fields))
        return STARTED

    def given_script(self, node: Simple, fields: list[Value]) -> list[Value]:
        """`sbatch <<EOF`: the script that it gets as its input, as a file."""
        here = input_of(node)
        if here is None or posixpath.basename(text_of(fields[0])) != "sbatch":
            return fields
        name = f"{posixpath.basename(self.shell.file) or 'sbatch'}:{node.line}"
        self.written[placed(name, self.shell.folder)] = self.here_text(here)
        return [*fields, (Segment(name, node.line, self.shell.file),)]

    def start(self, node: Simple, assignments: list[RawWord], fields: list[Value]) -> None:
        """Notes a command that the script would start, with the variables that it would get."""
        shell = self.shell.copy()
        for word in assignments:
            assign(word, shell, exported=True)
        if text_of(fields[0]).startswith("$("):
            return
        if text_of(fields[0]).startswith("-"):
            if node.cut and self.found:
                where = f"{self.shell.file}:{node.line}" if self.shell.file else f"line {node.line}"
                self.found[-1].warnings.append(f"{where}: a comment ends the command before {text_of(fields[0])}, which is no part of it")
            return
        warnings = list(dict.fromkeys(segment.doubt for field in fields for segment in field if segment.doubt))
        self.shell.budget.spend(characters=100 * len(shell.variables), commands=20)
        words = [word_of(field) for field in fields]
        edited = bool(self.edited) and any(placed(word.text.rpartition("=")[2], shell.folder) in self.edited for word in words)
        unsure = bool(warnings) or self.gone or shell.budget.absent or edited
        started = Started(words, shell.environment(), self.seen(), warnings, shell.unsure(), may_not_run=unsure)
        started.may_come_too_late = self.may_have_ended
        started.otherwise = unassumed(started, fields, shell)
        self.found.append(started)
        self.may_have_ended |= words[0].text == EXEC

    def call(self, body: Node, arguments: list[Value]) -> str:
        """Walks a function with its arguments; one that calls itself too deep is not known."""
        if self.shell.depth >= DEEPEST_CALL:
            return UNKNOWN
        before, self.shell.arguments = self.shell.arguments, arguments
        self.shell.depth += 1
        try:
            return self.node(body)
        except LeftError as left:
            if left.kind != FUNCTION:
                raise
            return FALSE if left.failed else TRUE
        finally:
            self.shell.arguments = before
            self.shell.depth -= 1

    def here_text(self, redirect: Redirect) -> str:
        """The text that a command gets as its input."""
        return text_of(self.here_value(redirect))

    def here_value(self, redirect: Redirect) -> Value:
        """The same with its places."""
        here = redirect.here
        if here is None:
            return text_value(redirect.target.parts, self.shell) if redirect.target else ()
        if here.literal:
            return (Segment(here.text, here.line, self.shell.file),)
        return text_value(parts_of(here.text, here.line), self.shell)

    def output(self, node: Simple, name: str, arguments: list[Value]) -> str:
        """What `cat` copies from a here-document, and what `echo` writes."""
        here = input_of(node)
        if here is not None:
            return self.here_text(here)
        if name in ("echo", "printf"):
            return " ".join(text_of(value) for value in arguments if text_of(value) not in ("-e", "-n")) + "\n"
        return ""

    def edit(self, words: list[str]) -> None:
        """`sed -i` of a program."""
        if posixpath.basename(words[0]) == "sed" and any(word.startswith(("-i", "--in-place")) for word in words[1:]):
            self.edited |= {placed(word, self.shell.folder) for word in words[1:] if word.endswith(PROGRAM)}

    def is_assumed(self, node: Simple) -> bool:
        """Whether what a command writes rests on what an image may set."""
        if not self.shell.imaged:
            return False
        here = input_of(node)
        values = [text_value(word.parts, self.shell) for word in node.words[1:]]
        return any(map(assumed_in, [*values, *([self.here_value(here)] if here is not None else [])]))

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
            self.edited |= {path} if path.endswith(PROGRAM) or self.is_assumed(node) else set()
            self.written[path] = (self.written.get(path, "") if appended else "") + text


def unassumed(started: Started, fields: Sequence[Value], shell: Shell) -> Started | None:
    """A command without what it has only where an image does not say otherwise; None where that is all of it."""
    variables = {name: value for name, each in shell.variables.items() if each.exported and (value := shell.get(name)) is not None}
    given = {name: Variable({"0": _unassumed(value)}, exported=True) for name, value in variables.items() if assumed_in(value)}
    if not given and not any(map(assumed_in, fields)):
        return None
    environment = Settings({name: stated for name, stated in started.environment.leaves.items() if name not in given})
    words = [word_of(_unassumed(field)) for field in fields]
    return Started(words, environment, started.files, started.warnings, started.unsure | given)


def _unassumed(value: Value) -> Value:
    return tuple(each._replace(text=f"${each.assumed}", known=False, assumed="") if each.assumed else each for each in value)


def input_of(node: Simple) -> Redirect | None:
    """The here-document or here-text of a command."""
    return next((redirect for redirect in node.redirects if redirect.here is not None or redirect.operator == "<<<"), None)
