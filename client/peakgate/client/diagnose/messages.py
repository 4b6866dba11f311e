"""The words in which libraries say that memory ran out, as figures.

Sources: PyTorch c10/cuda/CUDACachingAllocator.cpp (`malloc`: the message since 2.1, since 1.4 and before) and format_size there,
c10/core/impl/alloc_cpu.cpp (DefaultCPUAllocator), aten/src/ATen/cuda/Exceptions.h (names of states of cuBLAS and cuDNN); NCCL
src/include/checks.h (`Cuda failure`); XLA xla/tsl/framework/bfc_allocator.cc and xla/service/hlo_rematerialization.cc; bitsandbytes
csrc/ops.cuh (`Error out of memory`); signal 9, which a shell shows as 137; Slurm's and Kubernetes' words for the kernel's killer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

UNITS = {"bytes": 1, "B": 1, "": 1}
UNITS |= {f"{letter}{end}": 1024**power for power, letter in enumerate("KMGT", 1) for end in ("iB", "B", "", "ib")}
UNITS |= {f"{letter.lower()}{end}": 1024**power for power, letter in enumerate("KMGT", 1) for end in ("iB", "b", "")}
"""All of them binary: XLA and old PyTorch write G and GB for 2**30 bytes."""

_SIZE = r"([\d.,]{1,20}) ?([KMGTkmgt]?i?[Bb]?(?:ytes)?)\b"


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes as they were printed: `slack_bytes` is half of the last digit that was."""

    bytes: int
    slack_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to run out of memory. `pattern` finds it in a text that has one of `words`, in small letters; `where` is gpu, library, network
    or host."""

    name: str
    title: str
    where: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]

    def places(self, text: str, small: str) -> list[int]:
        """Where it stands in a text, which `small` is in small letters: most of a log is passed over by its words alone."""
        if not any(word in small for word in self.words):
            return []
        return [match.start() for match in self.pattern.finditer(text)]


def _kind(name: str, title: str, where: str, words: tuple[str, ...], pattern: str) -> Kind:
    return Kind(name, title, where, words, re.compile(pattern, re.IGNORECASE | re.MULTILINE))


KINDS = (
    _kind("allocator", "PyTorch found no room on the GPU", "gpu", ("out of memory",), r"\b(?:CUDA|HIP|XPU|MPS backend) out of memory\b"),
    _kind(
        "xla",
        "XLA found no room on the accelerator",
        "gpu",
        ("resource_exhausted", "out of memory"),
        r"RESOURCE_EXHAUSTED|Ran out of memory in memory space hbm|ran out of memory trying to allocate",
    ),
    _kind(
        "library",
        "a CUDA library found no room on the GPU",
        "library",
        ("alloc_failed",),
        r"CU(?:BLAS|DNN|SPARSE|SOLVER|FFT)_\w*ALLOC_FAILED",
    ),
    _kind(
        "driver",
        "the CUDA driver found no room on the GPU",
        "library",
        ("out of memory", "out_of_memory", "memoryallocation", "outofmemory"),
        r"CUDA(?: driver)? error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory"
        r"|Error out of memory at line",
    ),
    _kind(
        "host",
        "the host's main memory ran out",
        "host",
        ("memory", "errno 12"),
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory|_ArrayMemoryError|\bMemoryError\b|\[Errno 12\]",
    ),
    _kind(
        "shared-memory",
        "the shared memory of the data loader's processes ran out",
        "host",
        ("shared memory",),
        r"insufficient shared memory",
    ),
    _kind("network", "NCCL found no room on the GPU", "network", ("cuda failure",), r"Cuda failure (?:\d+ )?'out of memory'"),
    _kind(
        "killed",
        "the system killed a process, as it does when the host's main memory is used up",
        "host",
        ("oom", "kill", "out_of_memory", "exit"),
        r"oom[-_ ]?kill|\bOUT_OF_MEMORY\b|exit(?:ed with)? ?(?:code|status)[ :]{0,6}(?:-9|137)\b|\bSIGKILL\b|killed by signal: Killed"
        r"|^[ \t]*(?:\S+: line \d+:[ \t]+\d+ )?Killed\b",
    ),
    _kind(
        "network-fault",
        "NCCL failed in a call of CUDA, as it does when a card is full",
        "network",
        ("unhandled",),
        r"unhandled ?cuda ?error",
    ),
)
"""What says most comes first: a rank that fails on the GPU takes the others' networks with it."""

_FIGURES = {
    "tried": (
        r"allocate (?:request for )?[\d.]+ ?\w+ \((\d{1,20}) ?(B|bytes)\)",
        rf"[Tt]ried to allocate {_SIZE}",
        rf"failed to allocate {_SIZE}",
        rf"trying to allocate {_SIZE}",
        rf"Attempting to allocate {_SIZE}",
        rf"Failed to allocate request for {_SIZE}",
        rf"Unable to allocate {_SIZE} for an array",
    ),
    "capacity": (rf"total capaci?ty of {_SIZE}", rf"{_SIZE} total capacity", rf"Used \S+ of {_SIZE} hbm"),
    "free": (rf"of which {_SIZE} is free", rf"; {_SIZE} free", rf"There are {_SIZE} free"),
    "process": (rf"this process has {_SIZE} memory in use",),
    "allocated": (rf"{_SIZE} is allocated by PyTorch", rf"{_SIZE} already allocated"),
    "unallocated": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
    "reserved": (rf"{_SIZE} reserved in total", rf"{_SIZE} cached\)"),
    "limit": (rf"{_SIZE} allowed",),
}
FIGURES = {name: tuple(re.compile(each) for each in patterns) for name, patterns in _FIGURES.items()}

_OTHER_PROCESS = re.compile(rf"Process (\d+) has {_SIZE} memory in use")
_DEVICE = re.compile(r"\bGPU (\d+)\b|device ordinal (\d+)")
LONGEST_CHARACTERS = 3000
"""Of a message; what follows it in a log is another thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One failure. Sizes are those that it names; `others`: what other processes hold of the card, by their ids."""

    kind: Kind
    text: str
    device: int | None = None
    sizes: dict[str, Size]
    others: dict[int, int]

    def bytes_of(self, name: str) -> int | None:
        """A size in bytes, or None where the message does not say."""
        size = self.sizes.get(name)
        return size.bytes if size is not None else None

    @property
    def unallocated_bytes(self) -> int | None:
        """What PyTorch holds of the card and no tensor sits in."""
        stated, reserved, allocated = self.bytes_of("unallocated"), self.bytes_of("reserved"), self.bytes_of("allocated")
        if stated is not None or reserved is None or allocated is None:
            return stated
        return max(0, reserved - allocated)


def read_message(kind: Kind, text: str) -> Message:
    """The figures of a failure whose words begin `text`."""
    text = text[:LONGEST_CHARACTERS]
    device = _DEVICE.search(text)
    return Message(
        kind=kind,
        text=" ".join(text.split("\n", 1)[0].split()),
        device=int(device[1] or device[2]) if device else None,
        sizes={name: size for name, patterns in FIGURES.items() if (size := _first(patterns, text)) is not None},
        others={int(match[1]): _size(match[2], match[3]).bytes for match in _OTHER_PROCESS.finditer(text)},
    )


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> Size | None:
    found = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return _size(found[1], found[2]) if found else None


def _size(number: str, unit: str) -> Size:
    """`3.91`, `GiB`: the bytes, and what the rounding to two digits leaves open."""
    plain = number.replace(",", "").strip(".") or "0"
    digits = len(plain.partition(".")[2])
    scale = UNITS.get(unit, 1)
    try:
        return Size(round(float(plain) * scale), scale * 0.5 / 10**digits if scale > 1 else 0.0)
    except ValueError:  # several points: no number
        return Size(0)
