"""What a container asks for: GPUs, slices of them, main memory; and what shares a card in ways that nobody can count on."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from peakgate.readers.convert import whole
from peakgate.readers.place import MANIFEST, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-"
"""Resources of NVIDIA's device plugin; a slice with its profile under the strategy `mixed`."""

SHARES = (
    "nvidia.com/gpu.shared",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-number",
    "run.ai/gpu-fraction",
)
"""Parts of a card: time slices of the device plugin, HAMi, Volcano."""

FRACTIONS = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices")
"""Annotations and labels by which KAI and Run:ai give a part of a card."""

OTHERS = (
    "amd.com/gpu",
    "habana.ai/gaudi",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
)

UNITS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "Pi": 1 << 50,
}
"""Suffixes of a quantity (Kubernetes API, resource.Quantity), without those of parts."""

_QUANTITY = re.compile(r"(\d{1,18}(?:\.\d{1,9})?(?:[eE]\d{1,2})?)(|[kMGTP]|[KMGTP]i)$")


NOWHERE = Place(kind=MANIFEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """GPUs of one container, with the slice's profile when they are slices."""

    gpus: int = 0
    profile: str = ""
    place: Place = NOWHERE


def asked_of(container: Settings, reading: Reading) -> Asked:
    """The GPUs of a container: its limits, else its requests."""
    found = Asked()
    for part in ("resources.requests", "resources.limits"):
        for name, stated in container.under(part).leaves.items():
            place = replace(stated.place, kind=MANIFEST, key=name)
            if name == GPU or name.startswith(SLICE):
                gpus = _count(stated, place, reading)
                found = Asked(gpus=gpus, profile=name.removeprefix(SLICE) if name != GPU else "", place=place) if gpus else found
            elif name in SHARES:
                warn_once(reading, f"{name} gives a part of a card: the whole card is counted ({place})")
            elif name in OTHERS:
                warn_once(reading, f"{name} is no NVIDIA GPU: it is not counted ({place})")
    return found


def warn_once(reading: Reading, sentence: str) -> None:
    """Adds a warning that is not there yet."""
    if sentence not in reading.warnings:
        reading.warnings.append(sentence)


def warn_of_fractions(metadata: Settings, reading: Reading) -> None:
    """A share that an annotation or label asks for."""
    for part in ("annotations", "labels"):
        for name in FRACTIONS:
            stated = metadata(f"{part}.{name}")
            if stated is not None:
                place = replace(stated.place, kind=MANIFEST, key=name)
                warn_once(reading, f"{name}: {stated.text[:40]} gives a part of a card: the whole card is counted ({place})")


def _count(stated: Stated, place: Place, reading: Reading) -> int:
    try:
        count = whole(stated)
    except ValueError as error:
        warn_once(reading, f"gpu.count: {stated.text[:40]!r} cannot be read ({place}): {error}")
        return 0
    return count if 0 <= count < 1 << 20 else 0


def memory_of(container: Settings) -> Stated | None:
    """The main memory in bytes that a container may take: its limit, else its request; None when neither can be read."""
    for part in ("limits", "requests"):
        stated = container(f"resources.{part}.memory")
        match = _QUANTITY.match(stated.text.strip()) if stated is not None else None
        if stated is not None and match is not None:
            size = int(float(match[1]) * UNITS[match[2]])
            return Stated(size, replace(stated.place, kind=MANIFEST, key=f"{part}.memory")) if 0 < size < 1 << 62 else None
    return None
