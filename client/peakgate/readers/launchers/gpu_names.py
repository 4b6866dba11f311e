"""What clusters call GPUs (Slurm's GRES types and features, product names of labels) as names of the catalogue."""

from __future__ import annotations

import re

_CARDS: dict[str, tuple[str, ...]] = {
    "a2": ("a2-16gb",),
    "a10": ("a10-24gb",),
    "a10g": ("a10g-24gb",),
    "a30": ("a30-24gb",),
    "a40": ("a40-48gb",),
    "a100": ("a100-40gb", "a100-80gb"),
    "a800": ("a800-80gb",),
    "a6000": ("a6000-48gb",),
    "rtxa6000": ("a6000-48gb",),
    "b200": ("b200",),
    "b300": ("b300",),
    "gb200": ("gb200",),
    "gb300": ("gb300",),
    "gh200": ("gh200-96gb",),
    "h20": ("h20-96gb",),
    "h100": ("h100-80gb", "h100-94gb", "h100-96gb"),
    "h800": ("h800-80gb",),
    "h200": ("h200-141gb",),
    "l4": ("l4-24gb",),
    "l40": ("l40-48gb",),
    "l40s": ("l40s-48gb",),
    "rtx2080ti": ("rtx-2080ti-11gb",),
    "2080ti": ("rtx-2080ti-11gb",),
    "rtx3060": ("rtx-3060-12gb",),
    "rtx3090": ("rtx-3090-24gb",),
    "3090": ("rtx-3090-24gb",),
    "rtx4090": ("rtx-4090-24gb",),
    "4090": ("rtx-4090-24gb",),
    "rtx5090": ("rtx-5090-32gb",),
    "rtx6000ada": ("rtx-6000-ada-48gb",),
    "rtxpro6000": ("rtx-pro-6000-96gb",),
    "t4": ("t4-16gb",),
    "titanrtx": ("titan-rtx-24gb",),
    "v100": ("v100-16gb", "v100-32gb"),
    "v100s": ("v100-32gb",),
}
_USUAL = {"h100": "h100-80gb"}
"""A name without a size that means one card: the catalogue has it so, and the larger ones are called by their size or as NVL."""

_VENDORS = re.compile(r"nvidia|tesla|geforce|quadro|graphics|gpu(?=[_\-.]|$)")
_SIZE = re.compile(r"(?<![\d.])(\d{2,3})g(?:i?b)?(?![a-z0-9.])")
_BARE_SIZE = re.compile(r"[_\-](\d{2,3})$")
_SLICE = re.compile(r"(\d)g\.(\d{1,3})gb")
_NAME = re.compile(
    "(?<![a-z0-9])("
    + "|".join(sorted((re.sub(r"(?<=\D)(?=\d)|(?<=\d)(?=ti|ada)", r"[ _-]?", name) for name in _CARDS), key=len, reverse=True))
    + r")(?![a-rt-z0-9])"
)


def gpus_named(text: str) -> tuple[str, ...]:
    """Names of the catalogue that a cluster's name may mean: one when it is clear, none when it names no GPU that is known."""
    plain = _VENDORS.sub("", text.lower())
    plain = (
        plain.replace("rtx_a6000", "a6000")
        .replace("rtx-a6000", "a6000")
        .replace("rtx_pro", "rtxpro")
        .replace("rtx-pro", "rtxpro")
        .replace("titan_rtx", "titanrtx")
    )
    match = _NAME.search(plain)
    if match is None:
        return ()
    name = re.sub(r"[ _-]", "", match[1])
    rest = plain[: match.start()] + plain[match.end() :]
    if profile := _SLICE.search(rest):
        return _slice(name, profile)
    cards = _CARDS[name]
    size = _SIZE.search(rest) or _BARE_SIZE.search(rest)
    if size is not None and len(cards) > 1:
        return tuple(card for card in cards if card.endswith(f"-{size[1]}gb")) or cards
    if "nvl" in rest and name == "h100":
        return ("h100-94gb",)
    return (_USUAL[name],) if name in _USUAL else cards


def _slice(name: str, profile: re.Match[str]) -> tuple[str, ...]:
    """A MIG slice, which names the card by the size of its share: an A100's 3g.20gb is of the 40 GB one."""
    cards = _CARDS[name]
    if len(cards) > 1:
        share = int(profile[2]) * 8 // {"1": 1, "2": 2, "3": 4, "4": 4, "7": 8}.get(profile[1], 1)
        cards = tuple(card for card in cards if card.endswith(f"-{share}gb")) or cards
    return tuple(f"{card}/{profile[0]}" for card in cards)
