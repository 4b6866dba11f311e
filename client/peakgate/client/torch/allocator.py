"""What torch's caching allocator says of one GPU. Host-side counters: reading them neither waits for the GPU nor opens CUDA.

Source: torch/cuda/memory.py (`memory_stats`: allocated_bytes.all.peak, reserved_bytes.all.peak, num_alloc_retries, num_ooms;
`memory_stats_as_nested_dict` is the same before the hundred keys are joined and sorted, which costs more than reading them;
`get_allocator_backend`) and torch/cuda/__init__.py (`is_initialized`: false in a forked child, whose CUDA is not usable).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from peakgate.v1.allocator_report import NATIVE

CONF_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Today's name first."""


class Figures(NamedTuple):
    """Highest bytes and counts since the process began, or since the peaks were reset."""

    allocated_bytes: int
    reserved_bytes: int
    retries: int
    ooms: int


class Cuda(Protocol):
    """The part of `torch.cuda` that is used."""

    def is_initialized(self) -> bool:
        """Whether CUDA is open in this process."""

    def current_device(self) -> int:
        """The device that new tensors go to."""

    def memory_stats_as_nested_dict(self, device: int) -> Mapping[str, object]:
        """The allocator's counters."""

    def reset_peak_memory_stats(self, device: int) -> None:
        """Begins the peaks anew."""

    def get_device_properties(self, device: int) -> object:
        """Name, memory and `uuid`."""

    def get_allocator_backend(self) -> str:
        """native or cudaMallocAsync."""


class CudaAllocator:
    """One device: the given one, else the one that is current when it first holds memory."""

    def __init__(self, *, device: int | None = None, cuda: Cuda | None = None) -> None:
        self._device = device
        self._cuda = cuda

    def read(self) -> Figures | None:
        """The figures now; None while this process has not opened CUDA."""
        cuda = self._open_cuda()
        if cuda is None:
            return None
        device = cuda.current_device() if self._device is None else self._device
        stats = cuda.memory_stats_as_nested_dict(device)
        if not stats:
            return None
        peaks = _peak(stats, "allocated_bytes"), _peak(stats, "reserved_bytes")
        figures = Figures(*peaks, _count(stats, "num_alloc_retries"), _count(stats, "num_ooms"))
        if figures.reserved_bytes:
            self._device = device
        return figures

    def reset_peaks(self) -> None:
        """Begins the peaks anew, those of `torch.cuda.max_memory_allocated` as well."""
        cuda = self._open_cuda()
        if cuda is not None:
            cuda.reset_peak_memory_stats(cuda.current_device() if self._device is None else self._device)

    def uuid(self) -> str:
        """As NVML writes that of a GPU; of a MIG instance CUDA gives its own sixteen bytes. Empty where torch is too old to know it."""
        cuda = self._open_cuda()
        if cuda is None:
            return ""
        device = cuda.current_device() if self._device is None else self._device
        known = getattr(cuda.get_device_properties(device), "uuid", None)
        return "GPU-" + str(known).lower() if known else ""

    def backend(self) -> str:
        """native or cudaMallocAsync, for which torch has no peaks."""
        cuda = self._open_cuda()
        return NATIVE if cuda is None else cuda.get_allocator_backend()

    def _open_cuda(self) -> Cuda | None:
        cuda = self._cuda or getattr(sys.modules.get("torch"), "cuda", None)
        return cuda if cuda is not None and cuda.is_initialized() else None


def allocator_conf() -> str:
    """How the allocator was set up."""
    return next((conf for name in CONF_VARIABLES if (conf := os.environ.get(name))), "")


def is_out_of_memory(kind: type[BaseException]) -> bool:
    """torch.OutOfMemoryError, by its name: torch need not be loaded to look at an exception."""
    return any(each.__name__ == "OutOfMemoryError" for each in kind.__mro__)


def _peak(stats: Mapping[str, object], name: str) -> int:
    return int(stats[name]["all"]["peak"])  # type: ignore[index]  # torch nests kind and statistic in it


def _count(stats: Mapping[str, object], name: str) -> int:
    return int(stats.get(name, 0))  # type: ignore[call-overload,no-any-return]  # a count, or not there
