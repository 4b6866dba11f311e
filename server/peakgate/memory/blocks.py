"""Modules as lists of operations, in the order and with the local names of the reference code.

A line is `name = operation arguments -> width`. A name that starts with `_` is an unnamed intermediate and dies after its one
use; the others live until they are bound again, dropped, or the module returns, because Python's local variables are part
of the memory of a step. `discard.module names` empties tensors that a recomputed module makes
again in the backward pass. An operation is looked up among the job's roles first (`norm`, `core`, `dropout_hidden` …), then
among the blocks, then among the kernels. `linear.q` carries the name that adapters and bias lists use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One operation; `dying` are the arguments that nobody names afterwards."""

    outputs: tuple[str, ...]
    operation: str
    tag: str
    arguments: tuple[str, ...]
    width: str
    dying: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A module's forward function."""

    name: str
    inputs: tuple[str, ...]
    lines: tuple[Line, ...]


_LINE = re.compile(r"(?:(?P<out>[\w, ]+) = |(?P<ret>return ))?(?P<op>\w+)(?:\.(?P<tag>\w+))?(?P<args>(?: \w+)*?)(?: -> (?P<width>\w+))?$")


def parse(text: str) -> dict[str, Block]:
    """Reads blocks: a header `name inputs…` and its indented lines; raises ValueError on a line that is none."""
    blocks: dict[str, Block] = {}
    header: list[str] = []
    lines: list[Line] = []
    for raw in [*text.splitlines(), "end"]:
        code = raw.split("#", 1)[0].rstrip()
        if not code:
            continue
        if code[0] != " ":
            if header:
                blocks[header[0]] = Block(header[0], tuple(header[1:]), tuple(lines))
            header, lines = code.split(), []
        else:
            lines.append(_line(code.strip(), header[0]))
    return blocks


def _line(code: str, block: str) -> Line:
    match = _LINE.match(code)
    if match is None:
        raise ValueError(f"block {block}: cannot read {code!r}")
    outputs = ("return",) if match["ret"] else tuple(name.strip() for name in (match["out"] or "").split(",") if name.strip())
    arguments = tuple(match["args"].split())
    return Line(outputs, match["op"], match["tag"] or "", arguments, match["width"] or "", tuple(a for a in arguments if a[0] == "_"))
