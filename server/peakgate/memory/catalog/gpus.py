"""GPUs by name, with the memory that NVML reports, and what a job may use of it.

`total − reserved` is the capacity that PyTorch prints in an out-of-memory message. It follows the driver and ECC by some
tens of MiB; where messages differ, the smallest that was seen stands here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.prediction import FieldError, JobError

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpec:
    """A GPU, or a MIG slice of one: then the rates are the slice's share.

    `dense_bf16_flops` is the published dense tensor rate per second with float32 accumulation, in float16 where the card
    has no bfloat16; `memory_bandwidth` is in bytes per second. Both rank changes of a job, they do not enter its memory.
    """

    name: str
    total_bytes: int
    reserved_bytes: int
    compute_capability: tuple[int, int]
    nvlink: bool
    source: str
    dense_bf16_flops: float
    memory_bandwidth: float

    @property
    def usable_bytes(self) -> int:
        """What all processes on the card can have together."""
        return self.total_bytes - self.reserved_bytes


_CAPTURE = "nvidia-smi -q -x of a node: NVIDIA/k8s-test-infra tests/e2e/go/assertions/nvidiasmi/testdata/hardware/{}"
_PRINTED = "total: nvidia-smi ({}); reserved: total less the {} GiB that PyTorch out-of-memory messages print"
_GUESSED = "{}, unverified"

# Of each card: total MiB, reserved MiB, compute capability, NVLink, dense TFLOP/s, GB/s (rates: NVIDIA's data sheets), source.
_CARDS: dict[str, tuple[int, int, tuple[int, int], bool, float, float, str]] = {
    "a2-16gb": (15356, 461, (8, 6), False, 18, 200, _GUESSED.format("total: nvidia-smi (15356 MiB); reserved: from memory")),
    "a10-24gb": (23028, 439, (8, 6), False, 125, 600, _PRINTED.format("23028 MiB", "22.06")),
    "a10g-24gb": (23028, 510, (8, 6), False, 70, 600, _PRINTED.format("23028 MiB", "21.99")),
    "a30-24gb": (24576, 576, (8, 0), True, 165, 933, _GUESSED.format("total: data sheet; reserved: what the 4g.24gb slice leaves")),
    "a40-48gb": (46068, 654, (8, 6), True, 149.7, 696, _PRINTED.format("46068 MiB", "44.35")),
    "a100-40gb": (40960, 518, (8, 0), True, 312, 1555, _CAPTURE.format("qx-a100.xml")),
    "a100-80gb": (81920, 870, (8, 0), True, 312, 2039, _PRINTED.format("81920 MiB", "79.15 to 79.44")),
    "a800-80gb": (81920, 870, (8, 0), True, 312, 2039, "as a100-80gb: the same memory with a slower NVLink"),
    "a6000-48gb": (49140, 608, (8, 6), True, 154.8, 768, _PRINTED.format("49140 MiB", "47.40 to 47.54")),
    "b200": (183359, 728, (10, 0), True, 2250, 8000, _CAPTURE.format("qx-b200.xml")),
    "b300": (275040, 947, (10, 3), True, 2250, 8000, "total: nvidia-smi (275040 MiB); reserved: as of the GB300"),
    "gb200": (189471, 742, (10, 0), True, 2500, 8000, _CAPTURE.format("qx-gb200.xml")),
    "gb300": (284208, 947, (10, 3), True, 2500, 8000, _CAPTURE.format("qx-gb300.xml")),
    "gh200-96gb": (97871, 601, (9, 0), True, 989, 4000, _PRINTED.format("97871 MiB", "94.99")),
    "h20-96gb": (97871, 601, (9, 0), True, 148, 4000, _PRINTED.format("97871 MiB", "94.99")),
    "h100-80gb": (81559, 480, (9, 0), True, 989, 3350, _CAPTURE.format("qx-h100.xml")),
    "h100-94gb": (95830, 601, (9, 0), True, 835, 3900, _GUESSED.format("total: H100 NVL, from memory; reserved: as of h100-96gb")),
    "h100-96gb": (97871, 601, (9, 0), True, 989, 3350, _PRINTED.format("97871 MiB", "94.99")),
    "h800-80gb": (81559, 480, (9, 0), True, 989, 3350, "as h100-80gb: the same memory with a slower NVLink"),
    "h200-141gb": (143771, 698, (9, 0), True, 989, 4800, _PRINTED.format("143771 MiB", "139.72 to 139.81")),
    "l4-24gb": (23034, 475, (8, 9), False, 121, 300, _PRINTED.format("23034 MiB", "22.03")),
    "l40-48gb": (46068, 609, (8, 9), False, 181, 864, "as l40s-48gb: the same memory"),
    "l40s-48gb": (46068, 609, (8, 9), False, 362, 864, _CAPTURE.format("qx-l40s.xml")),
    "rtx-2080ti-11gb": (11264, 256, (7, 5), True, 53.8, 616, _PRINTED.format("11264 MiB", "10.75, from memory")),
    "rtx-3060-12gb": (12288, 286, (8, 6), False, 25.6, 360, _PRINTED.format("12288 MiB", "11.72 to 11.76")),
    "rtx-3090-24gb": (24576, 328, (8, 6), True, 71, 936, _PRINTED.format("24576 MiB", "23.68")),
    "rtx-4090-24gb": (24564, 490, (8, 9), False, 165.2, 1008, _PRINTED.format("24564 MiB", "23.51 to 23.65")),
    "rtx-5090-32gb": (32607, 515, (12, 0), False, 209.5, 1792, _PRINTED.format("32607 MiB", "31.34 to 31.39")),
    "rtx-6000-ada-48gb": (49140, 608, (8, 9), False, 364, 960, _PRINTED.format("49140 MiB", "47.40")),
    "rtx-pro-6000-96gb": (97887, 640, (12, 0), False, 504, 1792, _PRINTED.format("97887 MiB, from memory", "94.97")),
    "t4-16gb": (15360, 448, (7, 5), False, 65, 320, _CAPTURE.format("qx-t4.xml")),
    "titan-rtx-24gb": (24576, 359, (7, 5), True, 130.5, 672, _PRINTED.format("24576 MiB", "23.65")),
    "v100-16gb": (16384, 226, (7, 0), True, 125, 900, _PRINTED.format("16384 MiB", "15.78")),
    "v100-32gb": (32768, 287, (7, 0), True, 125, 900, _PRINTED.format("32768 MiB", "31.72 to 31.75")),
}

_LISTED = "nvidia-smi mig -lgip, as in NVIDIA's MIG user guide; PyTorch sees all of a slice, so nothing more is reserved"
_NVML_MOCK = "NVML's profile memory: NVIDIA/go-nvml pkg/nvml/mock/gpus/a100.go; PyTorch sees all of a slice"
_SHARE = "derived: the documented fraction of the card less the 1.46 GiB that the listed 1g.18gb slice of the H200 lacks"

# Of each card: the source, and the memory of each profile in MiB.
_SLICES: dict[str, tuple[str, dict[str, int]]] = {
    "a30-24gb": (_LISTED, {"1g.6gb": 5952, "2g.12gb": 11968, "4g.24gb": 24000}),
    "a100-40gb": (_NVML_MOCK, {"1g.5gb": 4864, "1g.10gb": 9856, "2g.10gb": 9856, "3g.20gb": 19968, "4g.20gb": 19968, "7g.40gb": 40192}),
    "a100-80gb": (_LISTED, {"1g.10gb": 9728, "1g.20gb": 19968, "2g.20gb": 19968, "3g.40gb": 40192, "4g.40gb": 40192, "7g.80gb": 80896}),
    "h100-80gb": (_LISTED, {"1g.10gb": 9984, "1g.20gb": 20096, "2g.20gb": 20096, "3g.40gb": 40320, "4g.40gb": 40320, "7g.80gb": 81024}),
    "h200-141gb": (_LISTED, {"1g.18gb": 16384}),
}  # fmt: skip

_EIGHTHS: dict[str, dict[str, int]] = {
    "h200-141gb": {"1g.35gb": 2, "2g.35gb": 2, "3g.71gb": 4, "4g.71gb": 4, "7g.141gb": 8},
    "b200": {"1g.23gb": 1, "1g.45gb": 2, "2g.45gb": 2, "3g.90gb": 4, "4g.90gb": 4, "7g.180gb": 8},
}
_SHARE_LACKS_MIB = 1495
"""143,073 MiB usable / 8 − 16,384 MiB: the H200's whole card against its listed 1g.18gb slice."""

_ALIASES = {
    "a2": "a2-16gb", "a10": "a10-24gb", "a10g": "a10g-24gb", "a30": "a30-24gb", "a40": "a40-48gb",
    "a100-sxm4-40gb": "a100-40gb", "a100-pcie-40gb": "a100-40gb", "a100-sxm4-80gb": "a100-80gb", "a100-80gb-pcie": "a100-80gb",
    "a800": "a800-80gb", "a800-sxm4-80gb": "a800-80gb", "a800-80gb-pcie": "a800-80gb", "a6000": "a6000-48gb", "rtx-a6000": "a6000-48gb",
    "gh200": "gh200-96gb", "gh200-480gb": "gh200-96gb", "gh200-120gb": "gh200-96gb", "h20": "h20-96gb",
    "h100": "h100-80gb", "h100-80gb-hbm3": "h100-80gb", "h100-pcie": "h100-80gb", "h100-sxm5": "h100-80gb", "h100-sxm5-80gb": "h100-80gb",
    "h100-nvl": "h100-94gb", "h800": "h800-80gb", "h800-80gb-hbm3": "h800-80gb", "h200": "h200-141gb", "h200-nvl": "h200-141gb",
    "l4": "l4-24gb", "l40": "l40-48gb", "l40s": "l40s-48gb", "t4": "t4-16gb", "titan-rtx": "titan-rtx-24gb",
    "b200-180gb": "b200", "b200-192gb": "b200", "b300-sxm6-ac": "b300", "b300-288gb": "b300",
    "rtx-2080-ti": "rtx-2080ti-11gb", "rtx-3060": "rtx-3060-12gb", "rtx-3090": "rtx-3090-24gb", "rtx-4090": "rtx-4090-24gb",
    "rtx-5090": "rtx-5090-32gb", "rtx-6000-ada": "rtx-6000-ada-48gb", "rtx-6000-ada-generation": "rtx-6000-ada-48gb",
    "rtx-pro-6000": "rtx-pro-6000-96gb", "rtx-pro-6000-blackwell-server-edition": "rtx-pro-6000-96gb",
    "rtx-pro-6000-blackwell-workstation-edition": "rtx-pro-6000-96gb",
    "v100-sxm2-16gb": "v100-16gb", "v100-pcie-16gb": "v100-16gb", "v100-sxm2-32gb": "v100-32gb", "v100-pcie-32gb": "v100-32gb",
    "v100-sxm3-32gb": "v100-32gb",
}  # fmt: skip
"""Other names, as `_normalised` writes them: what NVML calls the cards, and short ones that mean one card only."""


_VENDOR_WORDS = ("nvidia", "tesla", "geforce")


def find_gpu(name: str) -> GpuSpec:
    """The GPU of a catalogue name, of NVML's product name or of a short one; case and spaces do not matter.

    Raises JobError with ACCELERATOR_UNKNOWN and the nearest names.
    """
    wanted = _normalised(name)
    card, slash, profile = wanted.partition("/")
    found = GPUS.get(_ALIASES.get(card, card) + slash + profile)
    if found is None:
        hint = did_you_mean(wanted, GPUS) or "`peakgate catalog gpus` lists the names"
        description = f"unknown GPU {name!r}; {hint}; for another card state gpu.memory_bytes instead"
        raise JobError("ACCELERATOR_UNKNOWN", (FieldError(field="gpu.type", description=description),))
    return found


def _normalised(name: str) -> str:
    words = re.split(r"[\s_-]+", name.strip().lower().replace("/", "-mig-"))
    return "-".join(word for word in words if word not in _VENDOR_WORDS).replace("-mig-", "/")


def _cards() -> Iterator[GpuSpec]:
    for name, (total_mib, reserved_mib, capability, nvlink, teraflops, gigabytes, source) in _CARDS.items():
        yield GpuSpec(
            name=name,
            total_bytes=total_mib * MEBIBYTE,
            reserved_bytes=reserved_mib * MEBIBYTE,
            compute_capability=capability,
            nvlink=nvlink,
            source=source,
            dense_bf16_flops=teraflops * 1e12,
            memory_bandwidth=gigabytes * 1e9,
        )


def _slices(card: GpuSpec) -> Iterator[GpuSpec]:
    source, listed = _SLICES.get(card.name, ("", {}))
    for profile, mebibytes in listed.items():
        yield _slice(card, profile, mebibytes, source)
    for profile, eighths in _EIGHTHS.get(card.name, {}).items():
        yield _slice(card, profile, card.usable_bytes * eighths // (8 * MEBIBYTE) - _SHARE_LACKS_MIB, _SHARE)


def _slice(card: GpuSpec, profile: str, mebibytes: int, source: str) -> GpuSpec:
    # The digit before the g counts compute slices, of seven on these cards and of four on the A30.
    compute_share = int(profile[0]) / (4 if card.name == "a30-24gb" else 7)
    total_bytes = mebibytes * MEBIBYTE
    return GpuSpec(
        name=f"{card.name}/{profile}",
        total_bytes=total_bytes,
        reserved_bytes=0,
        compute_capability=card.compute_capability,
        nvlink=False,  # peer-to-peer does not work between MIG slices (MIG user guide)
        source=source,
        dense_bf16_flops=card.dense_bf16_flops * compute_share,
        memory_bandwidth=card.memory_bandwidth * total_bytes / card.total_bytes,
    )


GPUS: dict[str, GpuSpec] = {spec.name: spec for card in _cards() for spec in (card, *_slices(card))}
"""Every GPU and MIG slice by name; slices follow their card."""
