"""Whether a node's features satisfy a constraint such as `a100&80g`, `[rack1|rack2]` or `gpu*2` (sbatch(1), --constraint). Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

_TOKEN = re.compile(r"\s*(?:([&|()\[\]])|([^\s&|()\[\]*,]+)(?:\*\d+)?)\s*(?:,\s*)?")
LONGEST = 500


def satisfies(features: Collection[str], constraint: str) -> bool:
    """True as well where the constraint cannot be read: then no node is left out.

    A number of nodes behind a feature and the brackets that ask for the same feature on all nodes do not matter to one node.
    """
    tokens = _tokens(constraint.strip()[:LONGEST])
    if not tokens:
        return True
    try:
        held, at = _held(tokens, 0, frozenset(features))
    except (IndexError, RecursionError):
        return True
    return held if at == len(tokens) else True


@lru_cache(maxsize=256)
def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            return []
        tokens.append("(" if match[1] == "[" else ")" if match[1] == "]" else match[1] or match[2])
        at = match.end()
    return tokens


def _held(tokens: list[str], at: int, features: frozenset[str]) -> tuple[bool, int]:
    """One word or one bracket after another, from the left: neither sign binds closer than the other."""
    held, at = _one(tokens, at, features)
    while at < len(tokens) and tokens[at] in "&|":
        sign = tokens[at]
        other, at = _one(tokens, at + 1, features)
        held = (held and other) if sign == "&" else (held or other)
    return held, at


def _one(tokens: list[str], at: int, features: frozenset[str]) -> tuple[bool, int]:
    if tokens[at] == "(":
        held, at = _held(tokens, at + 1, features)
        if tokens[at] != ")":
            raise IndexError
        return held, at + 1
    if tokens[at] in "&|)":
        raise IndexError
    return tokens[at] in features, at + 1
