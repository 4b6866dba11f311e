"""Names of adapted layers: a list, one word for all of them, or a pattern that peft matches against whole paths.

Source: peft tuners/tuners_utils.py, check_target_module_exists: a text is a regular expression, a list holds ends of paths.
"""

from __future__ import annotations

import re

from peakgate.readers.finetuners.values import say, words
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Scalar

EVERY = ("all", "all-linear", "all_linear", "auto", "default")
_PROJECTIONS = re.compile(r"\(\??:?([a-z0-9_|]{1,200})\)(_proj)?")
_PATTERN = re.compile(r"[\\^$*+?()|]")


def state_targets(stated: Stated, reading: Reading) -> bool:
    """States the names; a pattern is taken apart where it lists projections, and is unread otherwise. Whether there are any."""
    names = [part for word in words(stated) for part in word.split()]
    if isinstance(stated.value, str) and _PATTERN.search(stated.value):
        names = _listed(stated.value)
        if not names:
            reading.cannot_say(f"adapted layers by the pattern {stated.value[:80]}", stated.place)
            return True
    targets: list[Scalar] = ["all-linear" if name.lower() in EVERY else name for name in names]
    if targets:
        say(reading, "lora.targets", targets, stated)
    return bool(targets)


def _listed(pattern: str) -> list[str]:
    """`…(mlp|self_attn).(up|down|q|v)_proj`: the last group is the layer's name."""
    groups = list(_PROJECTIONS.finditer(pattern[:2000]))
    last = groups[-1] if groups else None
    if last is None or not (last[2] or last[1].endswith("_proj")) or pattern[last.end() :].strip("$"):
        return []
    return [f"{name}{last[2] or ''}" for name in last[1].split("|") if name]
