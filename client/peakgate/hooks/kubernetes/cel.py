"""The common forms of the expressions by which a claim selects devices, as conditions that hold together. Pure.

A device's attributes and capacity under its driver's name: `==`, `in [..]` and a literal `matches` on an attribute; `compareTo`,
`isGreaterThan`, `isLessThan` and `==` on a capacity; alternatives of one attribute (Kubernetes API, resource.k8s.io CELDeviceSelector).
Whatever else stands in an expression narrows the choice further, so that leaving it out never loses a device that may be given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from peakgate.hooks.kubernetes.quantities import bytes_of

LONGEST = 10_240
"""Characters of an expression (CELSelectorExpressionMaxLength)."""

MOST_BRACKETS = 8
"""Around one operand; nobody writes more by hand."""

_FIELD = r"""device\.(?P<kind>attributes|capacity)\[\s*['"](?P<driver>[\w.\-/]{1,80})['"]\s*\]\.(?P<name>\w{1,64})"""
_TEXT = r"""['"](?P<text>[^'"]{0,128})['"]"""
_QUANTITY = r"""quantity\(\s*['"](?P<amount>[^'"]{1,32})['"]\s*\)"""
_EQUALS = re.compile(rf"{_FIELD}\s*==\s*{_TEXT}$")
_ONE_OF = re.compile(rf"{_FIELD}\s+in\s+\[(?P<texts>[^\]]{{0,512}})\]$")
_MATCHES = re.compile(rf"{_FIELD}(?P<lower>\.lowerAscii\(\))?\.(?:matches|contains)\(\s*{_TEXT}\s*\)$")
_COMPARES = re.compile(rf"{_FIELD}\.compareTo\(\s*{_QUANTITY}\s*\)\s*(?P<operator>>=|<=|==|>|<)\s*0$")
_IS = re.compile(rf"{_FIELD}\.is(?P<word>Greater|Less)Than\(\s*{_QUANTITY}\s*\)$")
_SAME = re.compile(rf"{_FIELD}\s*==\s*{_QUANTITY}$")
_LITERAL = re.compile(r"[\w \-./]+")
_LISTED = re.compile(r"""['"]([^'"]{0,128})['"]""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """On an attribute: one of `texts`, or a text that holds `part`. On a capacity: at least `least`, at most `most` bytes."""

    name: str
    texts: tuple[str, ...] = ()
    part: str = ""
    least: int = 0
    most: int | None = None

    def allows(self, attributes: Mapping[str, object], capacity: Mapping[str, str]) -> bool:
        """Whether a device meets it; one that does not say so is not ruled out."""
        if self.texts or self.part:
            value = attributes.get(self.name)
            if value is None:
                return True
            return self.part.lower() in str(value).lower() if self.part else str(value) in self.texts
        size = bytes_of(capacity.get(self.name, ""))
        return size is None or (size >= self.least and (self.most is None or size <= self.most))


def conditions_of(expression: str) -> list[Condition]:
    """The conditions of an expression that can be read."""
    found = [_condition(part) for part in _parts(expression[:LONGEST], "&&")] if len(expression) <= LONGEST else []
    return [each for each in found if each is not None]


def _parts(expression: str, operator: str) -> list[str]:
    """The operands of an operator that stand in no brackets, without brackets around the whole."""
    text = _bare(expression)
    parts, depth, start, quote, place = [], 0, 0, "", 0
    while place < len(text):
        letter = text[place]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif depth == 0 and text.startswith(operator, place):
            parts.append(text[start:place])
            start = place + len(operator)
            place += 1
        place += 1
    return [_bare(part) for part in (*parts, text[start:])]


def _bare(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    for _ in range(MOST_BRACKETS):
        if not (text.startswith("(") and text.endswith(")") and _closes_last(text)):
            break
        text = text[1:-1].strip()
    return re.sub(r" ?\. ?(?=is|compareTo|matches|contains|lowerAscii)", ".", text)


def _closes_last(text: str) -> bool:
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def _condition(part: str) -> Condition | None:
    alternatives = _parts(part, "||")
    if len(alternatives) > 1:
        found = [_condition(each) for each in alternatives]
        names = {each.name for each in found if each is not None and each.texts}
        if len(names) != 1 or any(each is None or not each.texts for each in found):
            return None
        return Condition(name=names.pop(), texts=tuple(text for each in found if each is not None for text in each.texts))
    return _of_attribute(part) or _of_capacity(part)


def _of_attribute(part: str) -> Condition | None:
    if match := _EQUALS.match(part):
        return Condition(name=match["name"], texts=(match["text"],)) if match["kind"] == "attributes" else None
    if match := _ONE_OF.match(part):
        return Condition(name=match["name"], texts=tuple(_LISTED.findall(match["texts"])))
    match = _MATCHES.match(part)
    if match is None:
        return None
    literal = match["text"].removeprefix("^").removesuffix("$").removeprefix(".*").removesuffix(".*")
    return Condition(name=match["name"], part=literal) if _LITERAL.fullmatch(literal) and "." not in literal else None


def _of_capacity(part: str) -> Condition | None:
    match = _COMPARES.match(part) or _IS.match(part) or _SAME.match(part)
    amount = bytes_of(match["amount"]) if match is not None else None
    if match is None or amount is None or match["kind"] != "capacity":
        return None
    told = match.groupdict()
    operator = told.get("operator") or {"Greater": ">", "Less": "<"}.get(told.get("word") or "", "==")
    least = amount + (operator == ">") if operator in (">=", ">", "==") else 0
    most = amount - (operator == "<") if operator in ("<=", "<", "==") else None
    return Condition(name=match["name"], least=least, most=most)
