"""What a shell knows while a script is read: variables, arguments, where it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from peakgate.readers.arguments import Word
from peakgate.readers.files import FileError
from peakgate.readers.place import FLAG, VARIABLE, Place, Stated
from peakgate.readers.settings import Settings
from peakgate.readers.shell.tokens import Node

MOST_CHARACTERS, MOST_COMMANDS, DEEPEST_CALL = 4 << 20, 10_000, 20
"""Of all expansions and commands of one reading, and of scripts in scripts; a launch script needs a thousandth of it."""


class Segment(NamedTuple):
    """Text that stands in one place; not `known`: a name that stands for what only a run knows; `doubt`: why it may be another; `assumed`:
    the variable that nothing at hand sets, and by which an image may make it another."""

    text: str
    line: int
    file: str
    known: bool = True
    doubt: str = ""
    assumed: str = ""


Value = tuple[Segment, ...]


def text_of(value: Value) -> str:
    """The text of a value."""
    return value[0].text if len(value) == 1 else "".join(segment.text for segment in value)


def known(value: Value) -> bool:
    """Whether all of a value is known."""
    return all(segment.known for segment in value)


def word_of(value: Value) -> Word:
    """A value as a word of a command."""
    first = value[0] if value else Segment("", 0, "")
    return Stated(text_of(value), Place(kind=FLAG, file=first.file, line=first.line))


@dataclass(slots=True)
class Variable:
    """Elements by index or key; a plain variable has one at `0`. `doubt`: of a branch that may give it another value; `assumed`: the
    variable of an image by which it may have one."""

    elements: dict[str, Value] = field(default_factory=dict)
    array: bool = False
    exported: bool = False
    doubt: str = ""
    assumed: str = ""


def doubted(value: Value, variable: Variable) -> Value:
    """A value of a variable, with the doubt about it."""
    if not variable.doubt and not variable.assumed:
        return value
    doubt, assumed = variable.doubt, variable.assumed
    return tuple(each._replace(doubt=doubt or each.doubt, assumed=assumed or each.assumed) for each in value)


def assumed_in(value: Value) -> str:
    """The variable of an image that a value rests on; empty for none."""
    return next((segment.assumed for segment in value if segment.assumed), "")


@dataclass(slots=True)
class Budget:
    """What a reading may still spend. Raises FileError when a script unfolds without end."""

    characters: int = MOST_CHARACTERS
    commands: int = MOST_COMMANDS
    left_out: bool = False
    """Whether a variable was taken for no words although a file that is not at hand may set it."""
    absent: bool = False
    """Whether one of the words of the command at hand was, although an image may set it."""

    def spend(self, characters: int = 0, commands: int = 0) -> None:
        """Takes from it."""
        self.characters -= characters
        self.commands -= commands
        if self.characters < 0 or self.commands < 0:
            raise FileError("unfolds into more than a launch script does")


@dataclass(slots=True)
class Shell:
    """`arguments`: those of the script or the function, None when nobody said them; `folder`: where relative paths begin."""

    file: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Node] = field(default_factory=dict)
    arguments: list[Value] | None = None
    folder: str = ""
    depth: int = 0
    all_exported: bool = False
    unseen: bool = False
    """Whether it took in a file that is not at hand, which may set anything."""
    imaged: bool = False
    """Whether it runs in an image, which sets variables that nobody here sees."""
    budget: Budget = field(default_factory=Budget)

    def copy(self) -> Shell:
        """A shell of its own with the same content: a subshell, a branch."""
        return replace(self, variables=dict(self.variables), functions=dict(self.functions))

    def child(self, file: str, arguments: list[Value] | None) -> Shell:
        """The shell of a script that is started: exported variables alone."""
        exported = {name: variable for name, variable in self.variables.items() if variable.exported}
        return Shell(file, exported, {}, arguments, self.folder, self.depth + 1, imaged=self.imaged, budget=self.budget)

    def get(self, name: str) -> Value | None:
        """The value of a plain variable, the first element of an array."""
        variable = self.variables.get(name)
        if variable is None or not variable.elements:
            return None
        return doubted(variable.elements.get("0", next(iter(variable.elements.values()))), variable)

    def set(self, name: str, value: Value, *, exported: bool = False) -> None:
        """Gives a plain variable its value."""
        before = self.variables.get(name)
        self.variables[name] = Variable({"0": value}, exported=exported or self.all_exported or (before is not None and before.exported))

    def give(self, name: str, text: str, line: int = 0) -> None:
        """Gives an exported variable a text."""
        self.set(name, (Segment(text, line, self.file),), exported=True)

    def environment(self) -> Settings:
        """The exported variables."""
        found = Settings()
        for name, variable in self.variables.items():
            value = variable.elements.get("0")
            if variable.exported and not variable.array and value is not None and known(value):
                found.override(name, variable_stated(name, value))
        return found

    def unsure(self) -> dict[str, Variable]:
        """The exported variables of which a part is not known here: a command in them is known all the same."""
        return {name: variable for name, variable in self.variables.items() if variable.exported and not _sure(variable)}


def _sure(variable: Variable) -> bool:
    value = variable.elements.get("0")
    return variable.array or value is None or known(value)


def variable_stated(name: str, value: Value) -> Stated:
    """A variable with the place where it is given."""
    first = value[0] if value else Segment("", 0, "")
    return Stated(text_of(value), Place(kind=VARIABLE, key=name, file=first.file, line=first.line))


def shell_of(environment: Settings, file: str = "") -> Shell:
    """A shell with environment variables."""
    shell = Shell(file)
    for name, stated in environment.leaves.items():
        shell.set(name, (Segment(stated.text, stated.place.line, stated.place.file),), exported=True)
    return shell


def joined(values: Iterable[Value], separator: str = " ") -> Value:
    """Values as one, with a blank between them."""
    found: list[Segment] = []
    for value in values:
        if found:
            found.append(Segment(separator, found[-1].line, found[-1].file))
        found += value
    return tuple(found)
