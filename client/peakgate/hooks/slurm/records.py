"""A line that `scontrol show … -o` prints. Pure."""

from __future__ import annotations

import re

_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z:/_]*)=")


def fields_of(line: str) -> dict[str, str]:
    """`Name=value Name=value …` of a node, a partition or a job; a value may hold blanks."""
    parts = _FIELD.split(line.strip())
    return {name: value.strip() for name, value in zip(parts[1::2], parts[2::2], strict=True)}
