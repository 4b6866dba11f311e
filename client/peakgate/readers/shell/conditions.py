"""`[ … ]`, `[[ … ]]` and `test` where what they ask is known."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LONGEST_WORDS, LONGEST_TEXT = 60, 4096


@dataclass(frozen=True, slots=True)
class Asked:
    """A word of a test; `known`: its text is what a run would see; `quoted`: it is no pattern and no operator."""

    text: str
    known: bool = True
    quoted: bool = False


_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
}
_FILES = ("-f", "-e", "-d", "-r", "-s", "-x", "-w", "-L", "-h")


def decided(words: Sequence[Asked], exists: Callable[[str], bool], is_set: Callable[[str], bool]) -> bool | None:
    """Whether a test holds; None where it depends on what is not known. A file that is not here may be where the job runs."""
    if not words or len(words) > LONGEST_WORDS:
        return None if words else False
    test = _Test(words, exists, is_set)
    result = test.either()
    return result if test.at == len(words) else None


class _Test:
    def __init__(self, words: Sequence[Asked], exists: Callable[[str], bool], is_set: Callable[[str], bool]) -> None:
        self.words, self.at, self.exists, self.is_set = words, 0, exists, is_set

    def take(self, *texts: str) -> bool:
        if self.at < len(self.words) and self.words[self.at].text in texts and not self.words[self.at].quoted:
            self.at += 1
            return True
        return False

    def either(self) -> bool | None:
        result = self.both()
        while self.take("||", "-o"):
            other = self.both()
            result = True if result or other else None if None in (result, other) else False
        return result

    def both(self) -> bool | None:
        result = self.one()
        while self.take("&&", "-a"):
            other = self.one()
            result = False if result is False or other is False else None if None in (result, other) else True
        return result

    def one(self) -> bool | None:
        if self.take("!"):
            result = self.one()
            return None if result is None else not result
        if self.take("("):
            result = self.either()
            self.take(")")
            return result
        return self.primary()

    def primary(self) -> bool | None:
        left = self.next()
        if left is None:
            return None
        following = self.words[self.at].text if self.at < len(self.words) else ""
        if following in ("=", "==", "!=", "=~", "<", ">") or following in _NUMBERS:
            self.at += 1
            right = self.next()
            return _compared(left, following, right or Asked(""))
        if re.fullmatch(r"-[a-zA-Z]", left.text) and not left.quoted and self.at < len(self.words) and following not in ("&&", "||", ")"):
            operand = self.next()
            return self.unary(left.text, operand) if operand is not None else None
        return bool(left.text) if left.known else None

    def next(self) -> Asked | None:
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else None

    def unary(self, sign: str, operand: Asked) -> bool | None:
        if not operand.known:
            return None
        if sign in ("-z", "-n"):
            return (sign == "-z") != bool(operand.text)
        if sign == "-v":
            return self.is_set(operand.text)
        if sign in _FILES and operand.text and self.exists(operand.text):
            return True
        return None


def _compared(left: Asked, sign: str, right: Asked) -> bool | None:
    if not (left.known and right.known) or max(len(left.text), len(right.text)) > LONGEST_TEXT:
        return None
    if sign in _NUMBERS:
        if not all(re.fullmatch(r"\s*-?[0-9]{1,18}\s*", each.text) for each in (left, right)):
            return None
        return _NUMBERS[sign](int(left.text), int(right.text))
    if sign in _TEXTS:
        return _TEXTS[sign](left.text, right.text)
    if sign == "=~":
        return _matches(left.text, right.text)
    same = left.text == right.text if right.quoted else fnmatch.fnmatchcase(left.text, right.text)
    return same == (sign != "!=")


def _matches(text: str, pattern: str) -> bool | None:
    """Regular expressions without repetition of groups; others could run for long."""
    if len(pattern) > 100 or len(text) > 200 or re.search(r"[)\]}][*+{]|[*+].*[*+].*[*+]", pattern.replace("]+", "").replace("]*", "")):
        return None
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return None
