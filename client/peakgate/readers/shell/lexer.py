"""Text into tokens, as POSIX.1-2024 (Shell Command Language, 2.2 to 2.7) and Bash's manual (3.1, 3.5, 3.6) have it."""

from __future__ import annotations

import re

from peakgate.readers.files import FileError
from peakgate.readers.shell.tokens import ARITHMETIC, COMMAND, PARAMETER, TEXT, HereDocument, Operator, Part, RawWord, Token

MOST_PIECES, LONGEST_EXPANSION = 50_000, 50_000
"""Words, operators and pieces of words of one text, and characters of one `$(…)`; no launch script has a hundredth of it."""

_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_QUICK = re.compile(r"[ \t]*([^ \t\r\n\\'\"$`;&|<>()#]+)(?=[ \t\n])")
_PLAIN = re.compile(r"[^ \t\r\n\\'\"$`;&|<>()]+")
_OPERATOR = re.compile(r"\d*(?:<<<|<<-?|<>|<&|<|>>|>\||>&|>)|&>>|&>|;;&|;;|;&|&&|\|\||\|&|[;&|()\n]")
_PLACEHOLDER = re.compile(r"""<[A-Za-z_][^<>|&;\n]{0,200}[^<>\s\d&|;]>(?=[\s/"']|$)""")
"""`<path to data>`: a shell has redirections in it, the author has not."""
_IN_DOUBLE = re.compile(r'[^"\\$`]+')
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!\-]")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=$")
_NESTED = re.compile(r"""\\.|'[^']*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$)|[(){}]""", re.DOTALL)
_BACKQUOTED = re.compile(r"(?:\\.|[^`\\])*", re.DOTALL)
_ANSI = re.compile(r"\$'((?:\\.|[^'\\])*)'?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t"}


def tokens_of(text: str, line: int = 1) -> list[Token]:
    """The tokens of a script or a command line; what is not closed ends with the text. Raises FileError for one that is too long."""
    return _Lexer(text, line).tokens()


def parts_of(text: str, line: int = 1, *, quoted: bool = True) -> list[Part]:
    """The parts of a text in which only expansions mean anything: a here-document, what stands behind `:-`."""
    lexer = _Lexer(text, line)
    parts: list[Part] = []
    while lexer.at < len(text):
        if not lexer.double_quoted_piece(parts, quoted=quoted):
            parts.append(Part(TEXT, text[lexer.at], quoted, lexer.line_here()))
            lexer.at += 1
    return parts


class _Lexer:
    def __init__(self, text: str, line: int) -> None:
        self.text, self.at, self._line, self._counted = text, 0, line, 0
        self.pieces = 0
        self.pending: list[tuple[HereDocument, str, bool]] = []

    def line_here(self) -> int:
        """The line at which the lexer is; each character is counted once."""
        if self.at > self._counted:
            self._line += self.text.count("\n", self._counted, self.at)
            self._counted = self.at
        return self._line

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while (token := self._next(found)) is not None:
            found.append(token)
        return found

    def count(self) -> None:
        """Counts a piece. Raises FileError for a text that is too long."""
        self.pieces += 1
        if self.pieces > MOST_PIECES:
            raise FileError("holds more words than a launch script does")

    def _next(self, before: list[Token]) -> Token | None:
        self.count()
        if quick := _QUICK.match(self.text, self.at):
            self.at = quick.start(1)
            line, self.at = self.line_here(), quick.end()
            return RawWord([Part(TEXT, quick[1], False, line)], line)
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        cut = False
        if self.text.startswith("#", self.at):
            cut = blank is not None and "\n" in blank[0] and bool(before) and isinstance(before[-1], RawWord)
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        if self.at >= len(self.text):
            return None
        if self.text.startswith(("<(", ">("), self.at):
            return self._word()
        if not _PLACEHOLDER.match(self.text, self.at) and (match := _OPERATOR.match(self.text, self.at)):
            return self._operator(match, cut=cut)
        return self._word()

    def _operator(self, match: re.Match[str], *, cut: bool) -> Operator:
        token = Operator(match[0], self.line_here(), cut=cut)
        self.at = match.end()
        if token.text == "\n":
            self._read_here_documents()
        elif token.text.lstrip("0123456789") in ("<<", "<<-"):
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            word = self._word()
            token.here = HereDocument(literal=any(part.quoted for part in word.parts))
            self.pending.append((token.here, word.written, token.text.endswith("-")))
        return token

    def _read_here_documents(self) -> None:
        for here, delimiter, tabs in self.pending:
            here.line = self.line_here()
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at = end + 1 if end >= 0 else len(self.text)
                line = line.lstrip("\t") if tabs else line
                if line == delimiter:
                    break
                lines.append(line)
            here.text = "\n".join(lines) + "\n"
        self.pending.clear()

    def _word(self) -> RawWord:
        word = RawWord([], self.line_here())
        while self.at < len(self.text):
            if match := _PLAIN.match(self.text, self.at):
                word.parts.append(Part(TEXT, match[0], False, self.line_here()))
                self.at = match.end()
            elif self.text[self.at] == "(" and len(word.parts) == 1 and _ASSIGNED.match(word.plain):
                self.at += 1
                word.array = self._array()
                break
            elif placeholder := _PLACEHOLDER.match(self.text, self.at):
                word.parts.append(Part(TEXT, placeholder[0], True, self.line_here()))
                self.at = placeholder.end()
            elif not self._quoted_piece(word.parts):
                break
        return word

    def _array(self) -> list[RawWord]:
        words: list[RawWord] = []
        while self.at < len(self.text):
            token = self._next([])
            if token is None or (isinstance(token, Operator) and token.text == ")"):
                break
            if isinstance(token, RawWord):
                words.append(token)
        return words

    def _quoted_piece(self, parts: list[Part]) -> bool:
        """Takes one piece that is not plain; False at the end of a word."""
        self.count()
        text, at, line = self.text, self.at, self.line_here()
        if text[at] == "\\":
            self.at += 2
            if text[at + 1 : at + 2] != "\n":
                parts.append(Part(TEXT, text[at + 1 : at + 2], True, line))
        elif text[at] == "'":
            end = text.find("'", at + 1)
            end = len(text) if end < 0 else end
            parts.append(Part(TEXT, text[at + 1 : end], True, line))
            self.at = end + 1
        elif text[at] == '"':
            self._double_quoted(parts)
        elif match := _ANSI.match(text, at):
            parts.append(
                Part(TEXT, re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), match[1], flags=re.DOTALL), True, line)
            )
            self.at = match.end()
        elif text[at] in "$`":
            self._expansion(parts, quoted=False)
        elif text.startswith(("<(", ">("), at):
            self._enclosed(parts, COMMAND, at + 1, quoted=True)
        else:
            return False
        return True

    def _double_quoted(self, parts: list[Part]) -> None:
        parts.append(Part(TEXT, "", True, self.line_here()))
        self.at += 1
        while self.at < len(self.text) and self.double_quoted_piece(parts, quoted=True):
            pass
        self.at += 1

    def double_quoted_piece(self, parts: list[Part], *, quoted: bool) -> bool:
        """Takes one piece of what stands between double quotes; False at a double quote."""
        self.count()
        text, at, line = self.text, self.at, self.line_here()
        if match := _IN_DOUBLE.match(text, at):
            parts.append(Part(TEXT, match[0], quoted, line))
            self.at = match.end()
        elif text[at] == "\\":
            following = text[at + 1 : at + 2]
            self.at += 2
            if following != "\n":
                parts.append(Part(TEXT, following if following in '$`"\\' else f"\\{following}", quoted, line))
        elif text[at] in "$`":
            self._expansion(parts, quoted=quoted)
        else:
            return False
        return True

    def _expansion(self, parts: list[Part], *, quoted: bool) -> None:
        text, at, line = self.text, self.at, self.line_here()
        if text[at] == "`":
            match = _BACKQUOTED.match(text, at + 1)
            inner = match[0] if match else ""
            parts.append(Part(COMMAND, inner, quoted, line))
            self.at = at + 2 + len(inner)
        elif text.startswith("$((", at):
            self._enclosed(parts, ARITHMETIC, at + 1, quoted=quoted)
        elif text.startswith("$(", at):
            self._enclosed(parts, COMMAND, at + 1, quoted=quoted)
        elif text.startswith("${", at):
            self._enclosed(parts, PARAMETER, at + 1, quoted=quoted)
        elif match := _NAME.match(text, at + 1):
            parts.append(Part(PARAMETER, match[0], quoted, line))
            self.at = match.end()
        else:
            parts.append(Part(TEXT, "$", quoted, line))
            self.at += 1

    def _enclosed(self, parts: list[Part], kind: str, opening: int, *, quoted: bool) -> None:
        """Takes what stands from a bracket to the one that closes it."""
        line = self.line_here()
        end = _closing(self.text, opening)
        if end - opening > LONGEST_EXPANSION:
            raise FileError("holds an expansion that is longer than a launch script")
        inner = self.text[opening + 1 : end]
        if kind == ARITHMETIC:
            inner = inner.removeprefix("(").removesuffix(")")
        parts.append(Part(kind, inner, quoted, line))
        self.at = end + 1


def _closing(text: str, opening: int) -> int:
    """Where the bracket at a place is closed; the end of the text when it is not."""
    ours = "()" if text[opening] == "(" else "{}"
    depth = 0
    for match in _NESTED.finditer(text, opening):
        if match[0] == ours[0]:
            depth += 1
        elif match[0] == ours[1]:
            depth -= 1
            if not depth:
                return match.start()
    return len(text)
