"""What text of a shell is made of: words with parts, operators, here-documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

TEXT, PARAMETER, COMMAND, ARITHMETIC = "text", "parameter", "command", "arithmetic"
"""Kinds of a word's parts: as it stands, `${…}`, `$(…)`, `$((…))`."""


class Part(NamedTuple):
    """A piece of a word; `text` without quotes, dollar and brackets."""

    kind: str
    text: str
    quoted: bool
    line: int


@dataclass(slots=True)
class RawWord:
    """A word before expansion; `array`: the words of `NAME=( … )`, the name and = being its parts."""

    parts: list[Part]
    line: int
    array: list[RawWord] | None = None

    @property
    def plain(self) -> str:
        """The text of a word without quotes and expansions; empty for others."""
        parts = self.parts
        return parts[0].text if len(parts) == 1 and parts[0].kind == TEXT and not parts[0].quoted else ""

    @property
    def written(self) -> str:
        """The text of a word as it is, expansions by their names."""
        return "".join(part.text for part in self.parts)


@dataclass(slots=True)
class HereDocument:
    """Lines behind a command; `literal`: nothing in them is expanded."""

    text: str = ""
    line: int = 0
    literal: bool = False


@dataclass(slots=True)
class Operator:
    """An operator or a newline, `cut`: a newline behind a comment that ends a continued command."""

    text: str
    line: int
    here: HereDocument | None = None
    cut: bool = False


Token = RawWord | Operator


@dataclass(slots=True)
class Redirect:
    """A redirection with its target, or its text."""

    operator: str
    target: RawWord | None = None
    here: HereDocument | None = None


@dataclass(slots=True)
class Simple:
    """A command with its words, assignments first."""

    words: list[RawWord]
    redirects: list[Redirect]
    line: int
    cut: bool = False


@dataclass(slots=True)
class AndOr:
    """`first && … || …`."""

    first: Node
    rest: list[tuple[str, Node]]


@dataclass(slots=True)
class Pipeline:
    """`a | b`, or `! a`."""

    nodes: list[Node]
    negated: bool = False


@dataclass(slots=True)
class If:
    """Tests with their bodies, in order."""

    arms: list[tuple[Block, Block]]
    otherwise: Block | None = None


@dataclass(slots=True)
class Loop:
    """`for name in words` or `while test` or `until test`."""

    kind: str
    body: Block
    name: str = ""
    words: list[RawWord] = field(default_factory=list)
    test: Block = field(default_factory=list)


@dataclass(slots=True)
class Case:
    """A word, and patterns with their bodies."""

    word: RawWord
    arms: list[tuple[list[RawWord], Block]]


@dataclass(slots=True)
class Group:
    """`{ …; }` or `( … )`."""

    body: Block
    subshell: bool
    redirects: list[Redirect]


@dataclass(slots=True)
class Function:
    """A function that is defined."""

    name: str
    body: Node


@dataclass(slots=True)
class Arithmetic:
    """`(( … ))`."""

    text: str
    line: int


Node = Simple | AndOr | Pipeline | If | Loop | Case | Group | Function | Arithmetic
Block = list[Node]
