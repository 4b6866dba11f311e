"""What a submission says to whoever admits it: `#PEAKGATE try=reason`, `#PEAKGATE override=WORD:reason`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakgate.hooks.slurm.attached import LONGEST_REASON, SCRIPT_HEAD, Attached

_LINE = re.compile(r"^[ \t]*#[ \t]*PEAKGATE:?[ \t]+(try|override)[ \t]*=[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """`try_reason`: why the user wants the job tried anyway. `override`: an operator's word, with their reason. Empty: not wished."""

    try_reason: str = ""
    override: str = ""
    override_reason: str = ""


def read_wishes(script: str, attached: Attached) -> Wishes:
    """The wishes of a script's lines, the last of each kind; else those that the submit host attached."""
    found = {match[1]: _line(match[2]) for match in _LINE.finditer(script[:SCRIPT_HEAD])}
    word, _, reason = (found.get("override") or attached.override).partition(":")
    return Wishes(try_reason=found.get("try") or attached.try_reason, override=word.strip(), override_reason=reason.strip())


def _line(text: str) -> str:
    cut = text.strip().strip("\"'")[:LONGEST_REASON]
    return "".join(char if char.isprintable() else " " for char in cut).strip()
