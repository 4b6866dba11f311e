"""Texts that stand for a list of layers: `([0]*3+[1]*58)`, `Et*3|(tt|)*29,m|L`, `M-M*-`. Nothing is evaluated."""

from __future__ import annotations

import re

LONGEST_TEXT, MOST_LAYERS = 2000, 5000
NO_LIST = "is no list of layers"
_LIST = re.compile(r"\[([\d,\s]*)\]")
_TOKEN = re.compile(r"\s*(\[[\d,\s]*\]|\d+|[()+*])")


def frequency(text: str) -> list[int] | int:
    """A pattern of routed (1) and dense (0) layers, or every how many layers one is routed (M: moe_freq_type). Raises ValueError."""
    text = text.strip().strip("'\"")
    if text.isdigit():
        return int(text)
    tokens = _tokens(text)
    found = _sum(tokens)
    if tokens:
        raise ValueError(NO_LIST)
    return found


def _tokens(text: str) -> list[str]:
    if len(text) > LONGEST_TEXT:
        raise ValueError("is too long")
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if text[at:].strip():
                raise ValueError(NO_LIST)
            break
        found.append(match[1])
        at = match.end()
    return found


def _sum(tokens: list[str], depth: int = 0) -> list[int]:
    total = _product(tokens, depth)
    while tokens and tokens[0] == "+":
        tokens.pop(0)
        total = _bounded(total, 1) + _product(tokens, depth)
    return _bounded(total, 1)


def _product(parts: list[str], depth: int) -> list[int]:
    value, times = _atom(parts, depth), 1
    while parts and parts[0] == "*":
        parts.pop(0)
        factor = _atom(parts, depth)
        if isinstance(value, int):
            value, factor = factor, value
        times *= _factor(factor)
    if isinstance(value, list):
        return _bounded(value, times)
    raise ValueError(NO_LIST)


def _factor(value: list[int] | int) -> int:
    if isinstance(value, list):
        raise ValueError(NO_LIST)  # noqa: TRY004 - what a setting says is a value
    return value


def _bounded(layers: list[int], times: int) -> list[int]:
    if len(layers) * times > MOST_LAYERS:
        raise ValueError("has more layers than a model")
    return layers * times


def _atom(parts: list[str], depth: int) -> list[int] | int:
    if not parts or depth > 20:
        raise ValueError(NO_LIST)
    part = parts.pop(0)
    if part == "(":
        inner = _sum(parts, depth + 1)
        if not parts or parts.pop(0) != ")":
            raise ValueError(NO_LIST)
        return inner
    if part.isdigit():
        return int(part)
    if match := _LIST.match(part):
        return [int(each) for each in match[1].split(",") if each.strip()]
    raise ValueError(NO_LIST)


_GROUP, _TIMES = re.compile(r"\(([^()]+)\)\*(\d{1,4})"), re.compile(r"(.)\*(\d{1,4})")
MOST_STAGES = 20_000


def stages(text: str) -> list[str]:
    """The layers of each stage and chunk of a layout: E embedding, t layer, m further token, L loss.

    Megatron-LM megatron/core/transformer/pipeline_parallel_layer_layout.py, parse_str_to_list. Raises ValueError.
    """
    text = re.sub(r"[\s,'\"]", "", text[: LONGEST_TEXT + 1])
    if len(text) > LONGEST_TEXT:
        raise ValueError("is too long")
    for pattern in (_GROUP, _TIMES):
        if len(text) + sum(len(match[1]) * int(match[2]) for match in pattern.finditer(text)) > MOST_STAGES:
            raise ValueError("unfolds into more than a model")
        text = pattern.sub(lambda match: match[1] * int(match[2]), text)
    if set(text) - set("EtmL|"):
        raise ValueError("is no layout of a pipeline")
    return text.split("|")


def hybrid_layers(text: str) -> int:
    """Layers of a pattern: state-space (M), attention (*), dense (-), routed (E); what is behind a / predicts further tokens."""
    return sum(1 for each in text.partition("/")[0] if each.strip() and each not in "|'\"")
