"""What runs in the place of a launch that fails, or of one that an image's variable chose: then nobody knows which one the job is.

Nothing of what is walked for this is kept but the doubt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from peakgate.readers.shell.commands import EXEC, Commands, Started
from peakgate.readers.shell.expand import fields_of
from peakgate.readers.shell.merge import assume
from peakgate.readers.shell.parser import parse
from peakgate.readers.shell.tokens import AndOr, Block, Case, Group, If, Loop, Node, Pipeline, Simple
from peakgate.readers.shell.values import Shell, Value, text_of
from peakgate.readers.shell.walking import FALSE, LeftError


class Earlier(NamedTuple):
    """The launch that a test of `$?` asks about; `fails`: the test holds when it failed."""

    fails: bool
    launches: list[Started]


class Replacing(Commands):
    """A walk that knows what another launch may stand for."""

    @contextlib.contextmanager
    def beside(self, untaken: Sequence[Block], assumed: str) -> Iterator[None]:
        """Around what is walked: bodies that run in its place where an image sets the variable `assumed`. Nothing of them is kept but the
        doubt: about variables that they set otherwise, and about launches in whose place they start others."""
        start, kept, ends, instead = self.shell, len(self.found), list[Shell](), list[Started]()
        leaves_here = False
        for body in untaken:
            self.shell = start.copy()
            try:
                self.block(body)
                ends.append(self.shell)
            except LeftError as left:
                leaves_here |= not left.failed
            finally:
                self.shell = start
            instead += self.found[kept:]
            leaves_here |= any(each.words[0].text == EXEC for each in self.found[kept:])
            del self.found[kept:]
        try:
            yield
        finally:
            self.gone |= leaves_here and bool(instead)
            self.may_have_ended |= leaves_here and kept > 0
            again = {each.key for each in instead}
            for each in self.found[kept:]:
                each.may_not_run |= bool(instead) and each.key not in again
            for end in ends:
                assume(self.shell, end, assumed)

    def earlier(self, before: int, *, fails: bool) -> Earlier | None:
        """What a test of `$?` asks about, None where it asks something else: the launch in front of it."""
        return Earlier((self.asked == FALSE) != fails, self.found[before - 1 : before]) if self.asked and before else None

    def replaceable(self, tried: list[Started], instead: list[Started]) -> None:
        """What runs in the place of a launch that fails, unless it is the same launch once more: then nobody knows which one the job is."""
        self.shell.budget.spend(characters=100 * len(tried))
        again = {each.key for each in tried}
        if again and any(each.key not in again for each in instead):
            for each in (*tried, *instead):
                each.may_not_run = True

    def on_failure(self, command: Value) -> None:
        """What `trap` names runs in the place of the first launch behind it that fails; another one, or none, ends that."""
        self.replace_trapped()
        outer, kept, self.shell = self.shell, len(self.found), self.shell.copy()
        try:
            with contextlib.suppress(LeftError):
                self.block(parse(text_of(command), command[0].line if command else 1))
            self.trapped = kept, self.found[kept:]
        finally:
            del self.found[kept:]
            self.shell = outer

    def replace_trapped(self) -> None:
        """Applies the `trap` that holds up to here."""
        begin, instead = self.trapped
        if instead:
            self.replaceable(self.found[begin:], instead)

    def tried_again(self, node: Loop, start: Shell, tried: list[Started]) -> None:
        """A loop that ends when its launch succeeds goes on when that fails: what the next turn starts runs in its place."""
        if tried and not self.stays and (leaves(node.body) or (node.test and (node.kind == "until") != is_negated(node.test))):
            self.replaceable(tried, self.next_turn(node, start))

    def next_turn(self, node: Loop, start: Shell) -> list[Started]:
        """What the second turn of a loop would start, if nothing ended the first; nothing of this is kept."""
        kept, written = len(self.found), dict(self.written)
        self.shell, shell, self.stays = start, self.shell, True
        values = fields_of(node.words, start) if node.words else []
        at = kept
        try:
            for value in values[:2] if values else (None, None):
                at = len(self.found)
                if value is not None:
                    self.shell.set(node.name, value)
                with contextlib.suppress(LeftError):
                    self.block([*node.test, *node.body])
            return self.found[at:] if len(values) != 1 else []
        finally:
            del self.found[kept:]
            self.shell, self.stays, self.written = shell, False, written


def is_negated(test: Block) -> bool:
    """Whether what follows on its success follows on a failure of its last command: `! command`."""
    return bool(test) and isinstance(test[-1], Pipeline) and test[-1].negated


def leaves(body: Block) -> bool:
    """Whether a loop's body has a `break`, or an `exit` that is no failure."""
    return any(_leaves(node) for node in body)


def _leaves(node: Node) -> bool:
    match node:
        case Simple():
            words = [word.plain for word in node.words]
            return words[:1] == ["break"] or words in (["exit"], ["exit", "0"])
        case AndOr():
            return leaves([node.first, *(each for _, each in node.rest)])
        case Pipeline():
            return leaves(node.nodes)
        case If():
            return any(leaves([*test, *body]) for test, body in node.arms) or leaves(node.otherwise or [])
        case Case():
            return any(leaves(body) for _, body in node.arms)
        case Group():
            return leaves(node.body)
    return False
