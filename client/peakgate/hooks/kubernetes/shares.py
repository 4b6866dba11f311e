"""The part of a card that a pod asks for, by the annotations and resources of schedulers that share cards. Pure.

KAI Scheduler and Run:ai: annotations gpu-memory, always in MiB, gpu-fraction, and gpu-fraction-num-devices for several cards
(KAI-Scheduler docs/gpu-sharing/README.md). HAMi: nvidia.com/gpumem in MiB of each card, nvidia.com/gpumem-percentage. Volcano's vGPUs:
volcano.sh/vgpu-memory in MiB, volcano.sh/vgpu-memory-percentage (volcano-sh/devices, docs/config.md, with its default factor of 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from peakgate.hooks.kubernetes.quantities import MEBIBYTE, bytes_of, count_of
from peakgate.readers.manifests.pods import Pods

MEMORY, FRACTION, DEVICES = "gpu-memory", "gpu-fraction", "gpu-fraction-num-devices"
MEBIBYTES = ("nvidia.com/gpumem", "volcano.sh/vgpu-memory")
PERCENTAGES = ("nvidia.com/gpumem-percentage", "volcano.sh/vgpu-memory-percentage")
_DECIMAL = re.compile(r"(\d{1,3}(\.\d{1,9})?|\.\d{1,9})$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`memory_bytes` of a card, or the part `ratio` of it. `count`: of how many cards, 0 where the resources say that. `doubt`: why it
    cannot be told."""

    memory_bytes: int = 0
    ratio: Fraction = Fraction(1)
    count: int = 0
    source: str = ""
    doubt: str = ""


def share_of(pods: Pods) -> Share | None:
    """The part that a pod asks for; None for whole cards."""
    return _annotated(pods) or _in_resources(pods)


def _annotated(pods: Pods) -> Share | None:
    texts = {name: stated.text.strip() for part in ("labels", "annotations") for name, stated in pods.metadata.under(part).leaves.items()}
    count = count_of(texts.get(DEVICES, "1")) or 1
    if MEMORY in texts:
        return _mebibytes(texts[MEMORY], f"annotation {MEMORY}", count)
    if FRACTION not in texts:
        return None
    text = texts[FRACTION]
    ratio = Fraction(text) if text and _DECIMAL.match(text) else Fraction(0)
    return _ratio(ratio, f"annotation {FRACTION}={text[:20]}", count)


def _in_resources(pods: Pods) -> Share | None:
    least: Share | None = None
    for container in pods.containers():
        limits = container.under("resources.requests").leaves | container.under("resources.limits").leaves
        for name, stated in limits.items():
            if name in MEBIBYTES and stated.text != "0":
                least = _smaller(least, _mebibytes(stated.text, f"resources {name}", 0))
            elif name in PERCENTAGES and 0 < count_of(stated.text) < 100:
                least = _smaller(least, _ratio(Fraction(count_of(stated.text), 100), f"resources {name}={stated.text[:20]}", 0))
    return least


def _smaller(one: Share | None, other: Share) -> Share:
    """Of two containers the one with the smaller part decides: each rank needs the same."""
    if one is None or other.doubt:
        return other
    if one.doubt or bool(one.memory_bytes) != bool(other.memory_bytes):
        return Share(doubt="its containers ask for parts of a card in different ways")
    return one if (one.memory_bytes, one.ratio) <= (other.memory_bytes, other.ratio) else other


def _mebibytes(text: str, source: str, count: int) -> Share:
    number = bytes_of(text)
    if not number or number > 1 << 21:
        return Share(doubt=f"{source}: {text[:20]} is no amount of MiB that a GPU has")
    return Share(memory_bytes=number * MEBIBYTE, count=count, source=f"{source}={text[:20]} MiB")


def _ratio(ratio: Fraction, source: str, count: int) -> Share:
    if not 0 < ratio <= 1:
        return Share(doubt=f"{source} is no part of a card")
    return Share(ratio=ratio, count=count, source=source)
