"""Which prediction a job belongs to: by the comment that the gate wrote, or by a file that says it. Never by names or times."""

from __future__ import annotations

import re

from peakgate.client.errors import InputError
from peakgate.v1.names import full_name

IN_COMMENT = re.compile(r"\bpeakgate=([^\s;,|\"']+)")
UNCHECKED = "unchecked"
"""What a gate writes in place of an id where it had no prediction."""


def prediction_of_comment(*comments: str) -> str:
    """The prediction that the first of these comments names (`peakgate=<id>`); empty when none does, or it says unchecked."""
    for comment in comments:
        found = IN_COMMENT.search(comment)
        if found:
            return "" if found[1] == UNCHECKED else full_name(found[1])
    return ""


def read_mapping(text: str, *, where: str) -> dict[str, str]:
    """Job to prediction from lines of `JOB PREDICTION`, separated by blanks or a comma. Raises InputError for another line."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        if len(words) != 2:
            raise InputError(f"{where}, line {number}: {line[:80]!r} is not a job and its prediction")
        found[words[0]] = full_name(words[1])
    return found
