"""The card that the labels of a node mean: what gpu-feature-discovery and the clouds write on it. Pure.

gpu-feature-discovery (NVIDIA/k8s-device-plugin docs/gpu-feature-discovery/README.md, internal/lm/resource.go) writes gpu.product,
gpu.memory in MiB, gpu.replicas and gpu.sharing-strategy; the memory stays the whole card's under time slicing and under MPS
(internal/lm/resource_test.go). MPS limits each client to an equal part (cmd/mps-control-daemon); time slices share all of it. With the MIG
strategy `single` product and memory are the slice's, with `mixed` each profile has labels of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from peakgate.hooks.kubernetes.candidates import Candidate
from peakgate.hooks.kubernetes.instance_types import instance_gpus
from peakgate.hooks.kubernetes.quantities import MEBIBYTE, count_of, label_bytes
from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.readers.manifests.cards import INSTANCES, KARPENTER, KARPENTER_MIB, PRODUCT, SHARED, WORDS, cards_of

MEMORY, REPLICAS, STRATEGY, GKE_STRATEGY, GKE_CLIENTS = (
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-max-shared-clients-per-gpu",
)
PARTITION = "cloud.google.com/gke-gpu-partition-size"
MPS = "mps"
NAMING = (*PRODUCT, *WORDS, KARPENTER, *INSTANCES)
"""Labels whose value names a card, the clearest first."""

_OWN_SIZE = re.compile(r"(\d{1,3})gb(\+me)?$")
_APART = 0.15
"""A card's name says its memory to about a tenth (an A100's 80 GB are 81,920 MiB); what differs by more was named for another card."""


def card_of(labels: Mapping[str, str], profile: str = "") -> Candidate | None:
    """The card, or the slice `profile` of it under the strategy `mixed`; None where the labels do not tell."""
    named = _named(labels)
    if profile:
        return _slice(labels, named, profile)
    label, name = named or ("", "")
    source = MEMORY if name else next((each for each in (MEMORY, KARPENTER_MIB) if label_bytes(labels.get(each, ""))), "")
    size = label_bytes(labels.get(source, "")) or 0
    if not size and not name:
        return None
    if size and not (gpus_named(name) and _agree(name, size)):
        name = ""
    shown = label or source
    said = source if size else label
    whole = Candidate(
        gpu=name,
        memory_bytes=size,
        on=labels.get(PRODUCT[0], ""),
        labels=((shown, labels[shown]),),
        memory_source=f"{said}={labels[said]}",
    )
    return _shared(whole, labels)


def _named(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """(label, name of the catalogue): the first label that means a card; of two that it may mean, the one of the stated memory."""
    memory = label_bytes(labels.get(MEMORY, "")) or label_bytes(labels.get(KARPENTER_MIB, ""))
    for label in (each for each in NAMING if each in labels):
        kind = instance_gpus(labels[label]) if label in INSTANCES else None
        names = (kind[0],) if kind is not None else cards_of(label, labels[label], labels.get(KARPENTER_MIB, ""))
        fitting = [name for name in names if memory is None or _agree(name, memory)] or names
        if fitting:
            name = min(fitting, key=_gigabytes)
            return label, name if PARTITION not in labels or "/" in name else f"{name}/{labels[PARTITION]}"
    return None


def _slice(labels: Mapping[str, str], named: tuple[str, str] | None, profile: str) -> Candidate | None:
    label = f"nvidia.com/mig-{profile.replace('+', '.')}.memory"
    size = label_bytes(labels.get(label, "")) or 0
    if named is None and not size:
        return None
    name = named[1] if named is not None and "/" not in named[1] else ""
    source = f"{label}={labels[label]}" if size else f"the profile {profile} of {name}"
    gpu = f"{name}/{profile.removesuffix('+me')}" if name else ""
    picked = ((label, labels[label]),) if size else ((named[0], labels[named[0]]),) if named is not None else ()
    return Candidate(gpu=gpu, memory_bytes=size, on=f"{name or 'a card'}/{profile}", labels=picked, memory_source=source)


def _shared(card: Candidate, labels: Mapping[str, str]) -> Candidate:
    strategy = labels.get(STRATEGY) or labels.get(GKE_STRATEGY, "")
    clients = count_of(labels.get(REPLICAS, "")) if strategy != labels.get(GKE_STRATEGY) else 0
    clients = clients or count_of(labels.get(GKE_CLIENTS, ""))
    is_marked = labels.get(PRODUCT[0], "").lower().endswith(SHARED)
    if clients <= 1 and not is_marked and strategy in ("", "none"):
        return card
    if strategy == MPS and clients > 1 and card.memory_bytes:
        size, source = card.memory_bytes // clients, f"{card.memory_source} / {clients} clients of MPS"
        return replace(card, memory_bytes=size, is_part=True, on=card.name, memory_source=source)
    return replace(card, is_shared=True)


def _gigabytes(name: str) -> int:
    match = _OWN_SIZE.search(name)
    return int(match[1]) if match else 0


def _agree(name: str, size: int) -> bool:
    """Whether a card of this name has about so much memory; a name without a size does not say."""
    stated = _gigabytes(name) * 1024 * MEBIBYTE
    return not stated or abs(size - stated) <= _APART * stated
