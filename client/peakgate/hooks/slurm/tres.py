"""Slurm's trackable resources in text, as the controller's scripts and `scontrol show` print them, of every release since 19.05.

Up to 23.02 an item of a job's request is `gres:gpu:h100:2`, from 23.11 on `gres/gpu:h100=2`, `gres/gpu:h100:2` or `cpu=4`
(`slurm_get_next_tres` in Slurm's src/common/slurm_protocol_defs.c; before, `_get_next_gres` in src/common/gres.c). A node's `Gres` has
neither prefix, and may say to which sockets the devices are near.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

GPU = "gpu"
SHARED = frozenset({"shard", "mps"})
"""Names of which one unit is a share of a card (gres.html, "MPS Management" and "Sharding")."""

_PREFIX = re.compile(r"gres[:/]", re.IGNORECASE)
_ASIDE = re.compile(r"\((?:S|IDX|CNT):[^)]*\)|:no_consume", re.IGNORECASE)
_COUNT = re.compile(r"(\d{1,18})(?:([kmgtp])(i?b)?)?$", re.IGNORECASE)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_PLAIN = re.compile(r"[\w.+\-]+$", re.ASCII)
NOTHING = frozenset({"", "(null)", "n/a", "none", "null"})
"""Words for no resource at all."""

LONGEST = 4096
"""Characters of a request that are read; a controller prints no longer one."""


@dataclass(frozen=True, slots=True)
class Item:
    """So many of one kind of resource: `gpu`, of a type or of any (empty)."""

    name: str
    type: str
    count: int


def items(text: str, *, is_gres: bool = False) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """The generic resources in a text, and what could not be read of it. `is_gres`: items without a prefix are generic resources as well.

    Of two items of the same name and type the later one counts, as in the controller.
    """
    found: dict[tuple[str, str], Item] = {}
    unread = []
    for part in _ASIDE.sub("", text[:LONGEST]).split(","):
        word = part.strip()
        if word.lower() in NOTHING:
            continue
        prefix = _PREFIX.match(word)
        if (prefix is None and not is_gres) or (prefix and prefix.end() == len(word)):
            continue
        item = _item(word[prefix.end() :] if prefix else word)
        if item is None:
            unread.append(word)
        elif item.count:
            found[item.name, item.type] = item
    return tuple(found.values()), tuple(unread)


def _item(text: str) -> Item | None:
    """`gpu`, `gpu:2`, `gpu:h100`, `gpu:h100:2`, `gpu=2`, `gpu:h100=2`; None: none of these."""
    name, *rest = text.replace("=", ":").split(":")
    if not _PLAIN.match(name) or len(rest) > 2 or not all(map(_PLAIN.match, rest)):
        return None
    count = count_of(rest[-1]) if rest else 1
    kind = "" if not rest or (len(rest) == 1 and count is not None) else rest[0]
    if count is None:
        if len(rest) == 2 or "=" in text:
            return None
        count = 1
    return Item(name.lower(), kind, count)


def count_of(text: str) -> int | None:
    """A number, in multiples of 1024 with `k` or `kib` and of 1000 with `kb` (`suffix_mult` in src/common); None: no number."""
    match = _COUNT.match(text)
    if match is None:
        return None
    unit = 1000 if (match[3] or "").lower() == "b" else 1024
    times: int = unit ** _POWER.get((match[2] or "").lower(), 0)
    return int(match[1]) * times
