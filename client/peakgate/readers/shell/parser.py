"""Tokens into a tree of commands; what does not belong where it stands is passed over."""

from __future__ import annotations

import re
from collections.abc import Callable

from peakgate.readers.files import FileError
from peakgate.readers.shell.lexer import tokens_of
from peakgate.readers.shell.tokens import (
    TEXT,
    AndOr,
    Arithmetic,
    Block,
    Case,
    Function,
    Group,
    If,
    Loop,
    Node,
    Operator,
    Part,
    Pipeline,
    RawWord,
    Redirect,
    Simple,
    Token,
)

DEEPEST = 30
_ENDS = ("then", "fi", "elif", "else", "do", "done", "esac", "}")
_REDIRECT = re.compile(r"\d*[<>]|&>")
_SEPARATORS = (";", "&", "\n", ";;", ";&", ";;&")


def parse(text: str, line: int = 1) -> Block:
    """The commands of a script or a command line. Raises FileError for what nests deeper than a launch script does."""
    parser = _Parser(tokens_of(text, line))
    block: Block = []
    while parser.more():
        block += parser.block(())
        parser.at += 1  # a word that ends nothing, or a bracket too many
    return block


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def more(self) -> bool:
        return self.at < len(self.tokens)

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def operator(self, *texts: str) -> bool:
        """Whether one of the operators comes next."""
        token = self.peek()
        return isinstance(token, Operator) and token.text in texts

    def word(self, *texts: str) -> bool:
        """Whether one of the plain words comes next."""
        token = self.peek()
        return isinstance(token, RawWord) and token.plain in texts

    def take(self, *texts: str) -> bool:
        """Passes one of the words or operators."""
        if self.word(*texts) or self.operator(*texts):
            self.at += 1
            return True
        return False

    def block(self, ends: tuple[str, ...]) -> Block:
        """Commands up to a word that ends them, which stays."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise FileError("nests deeper than a launch script does")
        found: Block = []
        while self.more():
            if self.operator(*_SEPARATORS):
                if self.operator(";;", ";&", ";;&") and ";;" in ends:
                    break
                self.at += 1
                continue
            if self.operator(")") or self.word(*(ends or _ENDS)):
                break
            before = self.at
            node = self.and_or()
            if node is not None:
                found.append(node)
            if self.at == before:
                self.at += 1
        self.depth -= 1
        return found

    def and_or(self) -> Node | None:
        first = self.pipeline()
        rest: list[tuple[str, Node]] = []
        while first is not None and self.operator("&&", "||"):
            connector = self.tokens[self.at]
            self.at += 1
            self.newlines()
            node = self.pipeline()
            if node is not None and isinstance(connector, Operator):
                rest.append((connector.text, node))
        return AndOr(first, rest) if first is not None and rest else first

    def newlines(self) -> None:
        while self.take("\n"):
            pass

    def pipeline(self) -> Node | None:
        negated = self.take("!")
        node = self.command()
        nodes = [node] if node is not None else []
        while self.operator("|", "|&"):
            self.at += 1
            self.newlines()
            if (node := self.command()) is not None:
                nodes.append(node)
        return nodes[0] if len(nodes) == 1 and not negated else Pipeline(nodes, negated) if nodes else None

    def command(self) -> Node | None:
        if self.operator("("):
            return self.arithmetic() or self.group(")", subshell=True)
        token = self.peek()
        known = _COMPOUND.get(token.plain) if isinstance(token, RawWord) else None
        return known(self) if known is not None else self.simple()

    def arithmetic(self) -> Node | None:
        """`(( … ))` when it is one."""
        start = self.tokens[self.at]
        following = self.tokens[self.at + 1 : self.at + 2]
        if not (following and isinstance(following[0], Operator) and following[0].text == "("):
            return None
        texts: list[str] = []
        for at in range(self.at + 2, min(len(self.tokens) - 1, self.at + 200)):
            token, after = self.tokens[at], self.tokens[at + 1]
            if isinstance(token, Operator) and token.text == "\n":
                return None
            if isinstance(token, Operator) and token.text == ")" and isinstance(after, Operator) and after.text == ")":
                self.at = at + 2
                return Arithmetic(" ".join(texts), start.line)
            texts.append(token.written if isinstance(token, RawWord) else token.text)
        return None

    def group(self, end: str, *, subshell: bool) -> Node:
        self.at += 1
        body = self.block((end,))
        self.take(end)
        return Group(body, subshell, self.redirects())

    def redirects(self) -> list[Redirect]:
        found: list[Redirect] = []
        while (token := self.peek()) is not None and isinstance(token, Operator) and _REDIRECT.match(token.text):
            found.append(self.redirect(token))
        return found

    def redirect(self, token: Operator) -> Redirect:
        self.at += 1
        target = self.peek()
        if token.here is None and isinstance(target, RawWord):
            self.at += 1
            return Redirect(token.text.lstrip("0123456789"), target)
        return Redirect(token.text, here=token.here)

    def simple(self) -> Node | None:
        token = self.peek()
        before = self.tokens[self.at - 1] if self.at else None
        node = Simple([], [], token.line if token else 0, cut=isinstance(before, Operator) and before.cut)
        while (token := self.peek()) is not None:
            if isinstance(token, RawWord):
                if not node.words and token.plain == "[[":
                    node.words += self.double_bracket()
                    break
                self.at += 1
                if not token.parts:
                    continue
                node.words.append(token)
            elif _REDIRECT.match(token.text):
                node.redirects.append(self.redirect(token))
            elif token.text == "(" and len(node.words) == 1 and self.is_definition():
                return self.function(node.words[0].written)
            else:
                break
        return node if node.words or node.redirects else None

    def double_bracket(self) -> list[RawWord]:
        words: list[RawWord] = []
        while (token := self.peek()) is not None:
            self.at += 1
            if isinstance(token, Operator):
                if token.text != "\n":
                    words.append(RawWord([Part(TEXT, token.text, False, token.line)], token.line))
                continue
            words.append(token)
            if token.plain == "]]":
                break
        return words

    def is_definition(self) -> bool:
        following = self.tokens[self.at + 1 : self.at + 2]
        return bool(following) and isinstance(following[0], Operator) and following[0].text == ")"

    def function(self, name: str) -> Node | None:
        self.take("(")
        self.take(")")
        self.newlines()
        self.depth += 1
        if self.depth > DEEPEST:
            raise FileError("nests deeper than a launch script does")
        body = self.command()
        self.depth -= 1
        return Function(name, body) if body is not None else None


def _named_function(parser: _Parser) -> Node | None:
    parser.at += 1
    name = parser.peek()
    parser.at += 1
    return parser.function(name.written) if isinstance(name, RawWord) else None


def _if(parser: _Parser) -> Node:
    node = If([])
    while parser.take("if", "elif"):
        test = parser.block(("then", "fi"))
        parser.take("then")
        node.arms.append((test, parser.block(("elif", "else", "fi"))))
    if parser.take("else"):
        node.otherwise = parser.block(("fi",))
    parser.take("fi")
    parser.redirects()
    return node


def _while(parser: _Parser) -> Node:
    kind = parser.tokens[parser.at]
    parser.at += 1
    test = parser.block(("do", "done"))
    return Loop(kind.plain if isinstance(kind, RawWord) else "", _body(parser), test=test)


def _body(parser: _Parser) -> Block:
    while parser.take("\n", ";"):
        pass
    parser.take("do")
    body = parser.block(("done",))
    parser.take("done")
    parser.redirects()
    return body


def _for(parser: _Parser) -> Node:
    parser.at += 1
    name = parser.peek()
    words: list[RawWord] = []
    if isinstance(name, RawWord):
        parser.at += 1
        parser.newlines()
        if parser.take("in"):
            while isinstance(word := parser.peek(), RawWord):
                words.append(word)
                parser.at += 1
    elif parser.operator("("):
        parser.arithmetic()
    return Loop("for", _body(parser), name=name.plain if isinstance(name, RawWord) else "", words=words)


def _case(parser: _Parser) -> Node | None:
    parser.at += 1
    subject = parser.peek()
    if not isinstance(subject, RawWord):
        return None
    parser.at += 1
    parser.newlines()
    parser.take("in")
    node = Case(subject, [])
    while parser.more():
        parser.newlines()
        if parser.take("esac"):
            break
        parser.take("(")
        patterns: list[RawWord] = []
        while (token := parser.peek()) is not None and not parser.operator(")"):
            parser.at += 1
            if isinstance(token, RawWord):
                patterns.append(token)
        parser.take(")")
        node.arms.append((patterns, parser.block((";;", "esac"))))
        parser.take(";;", ";&", ";;&")
    parser.redirects()
    return node


def _group(parser: _Parser) -> Node:
    return parser.group("}", subshell=False)


_COMPOUND: dict[str, Callable[[_Parser], Node | None]] = {
    "if": _if,
    "while": _while,
    "until": _while,
    "for": _for,
    "select": _for,
    "case": _case,
    "function": _named_function,
    "{": _group,
}
