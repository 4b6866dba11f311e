"""The card that a node's labels name: what a pod selects, or must be scheduled on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.readers.place import MANIFEST, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

PRODUCT = ("nvidia.com/gpu.product",)
"""gpu-feature-discovery: NVML's name with hyphens, which the catalogue knows; `-SHARED` for time slices, `-MIG-1g.5gb` for slices."""

SHARED = "-shared"

WORDS: dict[str, Mapping[str, str]] = {
    # Google Kubernetes Engine, "Run GPUs in GKE": accelerator types.
    "cloud.google.com/gke-accelerator": {
        "nvidia-tesla-a100": "a100-40gb",
        "nvidia-h100-mega-80gb": "h100-80gb",
        "nvidia-tesla-v100": "v100-16gb",
        "nvidia-tesla-t4": "t4-16gb",
    },
    # CoreWeave's node labels.
    "gpu.nvidia.com/class": {
        "A100_NVLINK": "a100-40gb",
        "A100_NVLINK_80GB": "a100-80gb",
        "H100_NVLINK_80GB": "h100-80gb",
        "A100_PCIE_80GB": "a100-80gb",
    },
    "gpu.nvidia.com/model": {},
    # The cluster autoscaler's label on AWS.
    "k8s.amazonaws.com/accelerator": {"nvidia-tesla-v100": "v100-16gb", "nvidia-tesla-t4": "t4-16gb", "nvidia-tesla-a100": "a100-40gb"},
    "accelerator": {"nvidia-tesla-v100": "v100-16gb", "nvidia-tesla-a100": "a100-40gb", "nvidia": ""},
}
"""Label -> words that mean another name of the catalogue than they say; other values are names as they stand."""

KARPENTER, KARPENTER_MIB = "karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-memory"
"""Karpenter's AWS labels: `a100` alone is two cards, and the memory in MiB tells them apart."""

BY_MEMORY = {"a100": ((45_000, "a100-40gb"), (90_000, "a100-80gb")), "v100": ((20_000, "v100-16gb"), (40_000, "v100-32gb"))}

INSTANCES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

FAMILIES = (
    # AWS EC2 accelerated instances.
    (r"p3dn\.", "v100-32gb"),
    (r"p3\.", "v100-16gb"),
    (r"p4d\.", "a100-40gb"),
    (r"p4de\.", "a100-80gb"),
    (r"p5\.", "h100-80gb"),
    (r"p5en?\.", "h200-141gb"),
    (r"p6-b200\.", "b200"),
    (r"g4dn\.", "t4-16gb"),
    (r"g5\.", "a10g-24gb"),
    (r"g6\.", "l4-24gb"),
    (r"g6e\.", "l40s-48gb"),
    # Google Compute Engine accelerator-optimised machines.
    (r"a2-highgpu-|a2-megagpu-", "a100-40gb"),
    (r"a2-ultragpu-", "a100-80gb"),
    (r"a3-(high|mega|edge)gpu-", "h100-80gb"),
    (r"a3-ultragpu-", "h200-141gb"),
    (r"a4-highgpu-", "b200"),
    (r"g2-standard-", "l4-24gb"),
    # Azure ND, NC and NV sizes.
    (r"standard_nd96asr_", "a100-40gb"),
    (r"standard_nd\d+amsr_a100_", "a100-80gb"),
    (r"standard_nc\d+ads_a100_", "a100-80gb"),
    (r"standard_nd\d+isr_h100_", "h100-80gb"),
    (r"standard_nc\d+adi?s_h100_", "h100-94gb"),
    (r"standard_nd\d+isr_h200_", "h200-141gb"),
    (r"standard_nc\d+as_t4_", "t4-16gb"),
    (r"standard_nc\d+r?s_v3", "v100-16gb"),
)
"""Beginning of an instance type -> its card."""

_REQUIRED = r"affinity\.nodeAffinity\.requiredDuringSchedulingIgnoredDuringExecution\.nodeSelectorTerms"
_TERMS = re.compile(rf"{_REQUIRED}\.\d+\.matchExpressions\.\d+\.")


def state_card(spec: Settings, reading: Reading) -> None:
    """States gpu.type from the labels of a pod's spec; of several cards the smallest, since each of them may be the one."""
    found = {path: stated for path, stated in _labels(spec).items() if stated}
    memory = found.get(KARPENTER_MIB, [])
    for label, values in found.items():
        cards = [(cards_of(label, each.text, memory[0].text if memory else ""), each) for each in values]
        if not cards or not all(names for names, _ in cards):
            continue
        card, stated = min(((name, each) for names, each in cards for name in names), key=lambda pair: _gigabytes(pair[0]))
        place = replace(stated.place, kind=MANIFEST, key=label)
        possible = sorted({name for names, _ in cards for name in names})
        if len(possible) > 1:
            reading.warnings.append(f"gpu.type: {' or '.join(possible)} may be the card ({place}); the smallest is taken")
        if any(each.text.lower().endswith(SHARED) for each in values):
            reading.warnings.append(f"gpu.type: time slices share a card's memory with other jobs, the whole of it is counted ({place})")
        partition = spec("nodeSelector.cloud.google.com/gke-gpu-partition-size")
        reading.state("gpu.type", f"{card}/{partition.text}" if partition is not None else card, place)
        return


def _labels(spec: Settings) -> dict[str, list[Stated]]:
    """Label -> values that a node may have, of the selector and of required affinity."""
    found = {label: [stated] for label, stated in spec.under("nodeSelector").leaves.items()}
    for path, stated in spec.leaves.items():
        match = _TERMS.match(path)
        if match is None or path != f"{match[0]}key" or (where := spec(f"{match[0]}operator")) is None or where.text != "In":
            continue
        values = spec(f"{match[0]}values")
        if values is not None and isinstance(values.value, list):
            found.setdefault(stated.text, []).extend(Stated(each, values.place) for each in values.value)
    order = [*PRODUCT, *WORDS, KARPENTER, *INSTANCES, KARPENTER_MIB]
    return {label: found[label] for label in order if label in found}


def cards_of(label: str, value: str, memory_mib: str = "") -> tuple[str, ...]:
    """The cards that a label's value may mean, as the catalogue names them; a name that it may not know stays as it is. None for a label
    or a value that names no card."""
    plain = value[: -len(SHARED)] if value.lower().endswith(SHARED) else value
    if label in INSTANCES:
        kind = plain.lower().removeprefix("ml.")
        return tuple(card for pattern, card in FAMILIES if re.match(pattern, kind))[:1]
    if label == KARPENTER and plain in BY_MEMORY and memory_mib.isascii() and memory_mib.isdigit() and len(memory_mib) < 9:
        return tuple(card for limit, card in BY_MEMORY[plain] if int(memory_mib) < limit)[:1]
    if label not in (*PRODUCT, *WORDS, KARPENTER) or not plain:
        return ()
    known = WORDS.get(label, {}).get(plain)
    if known is not None:
        return (known,) if known else ()
    return gpus_named(plain) or (plain,)


def _gigabytes(card: str) -> int:
    sizes = re.findall(r"(\d{1,4})gb", card.lower())
    return int(sizes[-1]) if sizes else 1 << 20
