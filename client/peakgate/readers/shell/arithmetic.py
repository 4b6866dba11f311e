"""Sums of a shell on known whole numbers."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable

LONGEST = 300
LARGEST = 1 << 62
_OPERATIONS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),  # towards zero, as C has it
    ast.Mod: lambda left, right: abs(left) % abs(right) * (1 if left >= 0 else -1),
    ast.Pow: lambda left, right: left**right if 0 <= right < 64 and abs(left) < LARGEST else LARGEST + 1,
    ast.LShift: lambda left, right: left << right if 0 <= right < 64 else LARGEST + 1,
    ast.RShift: lambda left, right: left >> right if 0 <= right < 64 else 0,
    ast.Eq: lambda left, right: int(left == right),
    ast.NotEq: lambda left, right: int(left != right),
    ast.Lt: lambda left, right: int(left < right),
    ast.LtE: lambda left, right: int(left <= right),
    ast.Gt: lambda left, right: int(left > right),
    ast.GtE: lambda left, right: int(left >= right),
}
_CONDITIONAL = re.compile(r"([^?]+)\?([^:?]+):([^:?]+)$")


def arithmetic(text: str, value_of: Callable[[str], int | None]) -> int | None:
    """The result of an expression, `$` in front of names allowed; None where a name is unknown or the expression is beyond this."""
    text = re.sub(r"\$\{?(\w+)\}?", r"\1", text).strip()
    if match := _CONDITIONAL.match(text):
        test = arithmetic(match[1], value_of)
        return None if test is None else arithmetic(match[2] if test else match[3], value_of)
    if not text or len(text) > LONGEST:
        return None
    text = re.sub(r"\b0+(?=\d)", "", text.replace("&&", " and ").replace("||", " or "))
    try:
        with warnings.catch_warnings(action="ignore"):  # what Python thinks of `8for` is nobody's concern
            return _value(ast.parse(text, mode="eval").body, value_of)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.AST, value_of: Callable[[str], int | None]) -> int | None:
    match node:
        case ast.Constant(value=int(value)):
            return value if abs(value) <= LARGEST else None
        case ast.Name(id=name):
            return value_of(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _value(operand, value_of)
            return None if negated is None else -negated
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, value_of)
        case ast.BinOp(left=left, op=operation, right=right) | ast.Compare(left=left, ops=[operation], comparators=[right]):
            return _applied(type(operation), _value(left, value_of), _value(right, value_of))
        case ast.BoolOp(op=operation, values=values):
            found = [_value(each, value_of) for each in values]
            if any(each is None for each in found):
                return None
            return int(all(found) if isinstance(operation, ast.And) else any(found))
    return None


def _applied(operation: type[ast.AST], left: int | None, right: int | None) -> int | None:
    apply = _OPERATIONS.get(operation)
    if apply is None or left is None or right is None:
        return None
    result = apply(left, right)
    return result if abs(result) <= LARGEST else None
