"""A script in the order of a run, without running it: what it sets, and the commands that it would start."""

from __future__ import annotations

import contextlib
import fnmatch
import re

from peakgate.readers.files import FileError, Files
from peakgate.readers.shell.commands import Started, input_of
from peakgate.readers.shell.expand import fields_of, rests_on, sum_of, text_value
from peakgate.readers.shell.merge import merge_branches
from peakgate.readers.shell.parser import parse
from peakgate.readers.shell.replacing import Replacing, is_negated
from peakgate.readers.shell.tokens import AndOr, Arithmetic, Block, Case, Function, Group, If, Loop, Node, Pipeline, Simple
from peakgate.readers.shell.values import DEEPEST_CALL, Segment, Shell, assumed_in, known, text_of
from peakgate.readers.shell.walking import FALSE, LOOP, SCRIPT, STARTED, TRUE, UNKNOWN, LeftError

_STEP = re.compile(r"^(\w+)\s*([+-])[+-]$")
MOST_TURNS = 100
"""Of a loop over the script's own arguments."""


def started_by(text: str, files: Files, shell: Shell, line: int = 1) -> list[Started]:
    """The commands of a script or a command line that may train, in order. Raises FileError for what no script is."""
    walk = _Walk(files, shell)
    if shell.depth > DEEPEST_CALL:
        raise FileError("starts scripts that start scripts without end")
    try:
        with contextlib.suppress(LeftError):
            walk.block(parse(text.replace("\r\n", "\n"), line))
        walk.replace_trapped()
    except RecursionError as error:
        raise FileError("nests deeper than a launch script does") from error
    return walk.found


class _Walk(Replacing):
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

    def and_or(self, node: AndOr) -> str:
        before, self.asked, self.assumed = len(self.found), "", ""
        status, fails = self.node(node.first), is_negated([node.first])
        assumed = self.assumed
        earlier = self.earlier(before, fails=fails)
        for connector, following in node.rest:
            on_failure = status != FALSE and (connector == "||") != fails
            tried = self.found[before:] if on_failure else []
            behind = len(self.found)
            if status == UNKNOWN or (tried and connector == "||"):
                self.branches([[following]], may_skip=True)
            elif (connector == "&&") == (status != FALSE):
                with self.beside([[]] if assumed else [], assumed):
                    status = self.unless_it_fails(following)
            elif assumed:
                with self.beside([[following]], assumed):
                    pass
            if on_failure:
                self.replaceable(tried, self.found[before + len(tried) :])
            if earlier is not None and (connector == "&&") == earlier.fails:
                self.replaceable(earlier.launches, self.found[behind:])
            fails = is_negated([following])
        self.assumed = assumed or self.assumed
        return status

    def unless_it_fails(self, node: Node) -> str:
        """A node whose `exit 1` is passed over: that the job runs is given."""
        try:
            return self.node(node)
        except LeftError as left:
            if not left.failed:
                raise
            return TRUE

    def pipeline(self, node: Pipeline) -> str:
        if len(node.nodes) == 1:
            status = self.node(node.nodes[0])
            return {TRUE: FALSE, FALSE: TRUE}.get(status, status) if node.negated else status
        for each in node.nodes:
            self.apart([each])
        written = next((input_of(each) for each in node.nodes if isinstance(each, Simple) and input_of(each) is not None), None)
        last = node.nodes[-1]
        if written is not None and isinstance(last, Simple):
            self.write(last, self.here_text(written))
        return UNKNOWN

    def apart(self, body: Block) -> str:
        """A body in a subshell."""
        outer, self.shell = self.shell, self.shell.copy()
        try:
            return self.block(body)
        except LeftError:
            return TRUE
        finally:
            self.shell = outer

    def group(self, node: Group) -> str:
        return self.apart(node.body) if node.subshell else self.block(node.body)

    def if_(self, node: If) -> str:
        bodies: list[Block] = []
        tried: list[tuple[int, bool, list[Started]]] = []
        untaken, assumed = list[Block](), ""
        last = node.otherwise
        for at, (test, body) in enumerate(node.arms):
            before, self.asked, self.assumed = len(self.found), "", ""
            status = self.block(test)
            if self.assumed and status in (TRUE, FALSE):
                assumed = self.assumed
                untaken += [body] if status == FALSE else [*(later for _, later in node.arms[at + 1 :]), node.otherwise or []]
            if status == TRUE:
                last = body
                break
            if status != FALSE:
                bodies.append(body)
                earlier = self.earlier(before, fails=is_negated(test))
                tried.append((len(bodies), is_negated(test), self.found[before:]) if earlier is None else (len(bodies), *earlier))
        bodies += [last] if last is not None else []
        with self.beside(untaken, assumed):
            return self.arms(bodies, tried, may_skip=last is None)

    def arms(self, bodies: list[Block], tried: list[tuple[int, bool, list[Started]]], *, may_skip: bool) -> str:
        """The bodies of an `if` of which one runs; `tried`: what its tests started, and which body is behind them."""
        if not any(launches for _, _, launches in tried):
            return self.chosen(bodies, may_skip=may_skip)
        walked = self.branches(bodies, may_skip=may_skip)
        for place, (behind, fails, launches) in enumerate(tried):
            otherwise = walked[behind - 1 : behind] if fails else [*walked[behind:], *(later for _, _, later in tried[place + 1 :])]
            self.replaceable(launches, [each for body in otherwise for each in body])
        return STARTED

    def case(self, node: Case) -> str:
        value = text_value(node.word.parts, self.shell)
        candidates: list[Block] = []
        for patterns, body in node.arms:
            texts = [text_of(text_value(pattern.parts, self.shell)) for pattern in patterns]
            if not known(value):
                candidates.append(body)
            elif any(fnmatch.fnmatchcase(text_of(value)[:1000], text[:200]) for text in texts):
                assumed = assumed_in(value) if self.shell.imaged else ""
                with self.beside([other for _, other in node.arms if other is not body] if assumed else [], assumed):
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
        except LeftError as left:
            if not left.failed:
                raise
            self.shell.variables = before.variables
            return STARTED

    def branches(self, bodies: list[Block], *, may_skip: bool) -> list[list[Started]]:
        """Bodies of which nobody knows which one runs: each from the same start, then what they agree on. What each of them starts."""
        start, ends, walked = self.shell, list[Shell](), list[list[Started]]()
        for body in bodies:
            self.shell, before = start.copy(), len(self.found)
            try:
                self.block(body)
                ends.append(self.shell)
            except LeftError as left:
                self.may_have_ended |= left.kind == SCRIPT and not left.failed and before > 0
            walked.append(self.found[before:])
        self.shell = start
        for started in (each for found in walked for each in found):
            started.may_not_run = True
        if ends:
            merge_branches(start, ends if not may_skip else [*ends, start.copy()])
        return walked

    def loop(self, node: Loop) -> str:
        start, before = self.shell.copy(), len(self.found)
        try:
            return self.turn(node)
        finally:
            self.tried_again(node, start, self.found[before:])

    def turn(self, node: Loop) -> str:
        try:
            if node.kind in ("for", ""):
                return self.for_(node)
            for _ in range(MOST_TURNS):
                before = len(self.found)
                status, before_body = self.block(node.test), len(self.found)
                if status in (UNKNOWN, STARTED):
                    tried = self.found[before:]
                    self.branches([node.body], may_skip=True)
                    if (node.kind == "until") != is_negated(node.test):
                        self.replaceable(tried, self.found[before + len(tried) :])
                    break
                if (status == TRUE) == (node.kind == "until"):
                    break
                self.block(node.body)
                if len(self.found) > before_body:
                    break
        except LeftError as left:
            if left.kind != LOOP:
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
        text = _STEP.sub(r"\1 \2= 1", node.text.strip())
        name, sign, expression = text.partition("=")
        name = name.strip()
        if sign and name.rstrip("+-*/ ").isidentifier() and not expression.startswith("="):
            operation, name = name[len(name.rstrip("+-*/ ")) :].strip(), name.rstrip("+-*/ ")
            expression = f"{name}{operation}({expression})" if operation else expression
            self.set_sum(name, expression, node.line)
            return TRUE
        result = sum_of(node.text, node.line, self.shell)
        self.assumed = rests_on(node.text, node.line, self.shell) or self.assumed
        return UNKNOWN if result is None else TRUE if result else FALSE

    def set_sum(self, name: str, expression: str, line: int) -> None:
        result = sum_of(expression, line, self.shell)
        text = f"${name}" if result is None else str(result)
        assumed = rests_on(expression, line, self.shell)
        self.shell.set(name, (Segment(text, line, self.shell.file, known=result is not None, assumed=assumed),))
