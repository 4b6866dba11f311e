"""A `torch.cuda` of arithmetic: the caching allocator's counters without a GPU, with the keys of torch/cuda/memory.py."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from peakgate.v1.allocator_report import AllocatorReport, decode

GIB = 1 << 30
BARE_UUID = "00000000-0000-4000-8000-000000000000"


class OutOfMemoryError(RuntimeError):
    """Named as torch's."""


class FakeCuda:
    """One device of `total_bytes`. The allocator keeps what it has reserved."""

    def __init__(self, *, total_bytes: int = 80 * GIB, uuid: str | None = BARE_UUID, backend: str = "native") -> None:
        self.total_bytes = total_bytes
        self.opened = True
        self.backend = backend
        self.allocated = self.allocated_peak = self.reserved = self.reserved_peak = self.retries = self.ooms = 0
        self.reads = self.resets = 0
        self._uuid = uuid

    def allocate(self, size: int) -> None:
        """Raises OutOfMemoryError as torch does: after it has freed its cache and tried again."""
        if self.allocated + size > self.total_bytes:
            self.retries += 1
            self.ooms += 1
            raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes")
        self.allocated += size
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        self.reserved = max(self.reserved, self.allocated)
        self.reserved_peak = max(self.reserved_peak, self.reserved)

    def free(self, size: int) -> None:
        """Gives back to the cache."""
        self.allocated -= size

    def use(self, size: int) -> None:
        """Allocates and frees."""
        self.allocate(size)
        self.free(size)

    def is_initialized(self) -> bool:
        """As torch's."""
        return self.opened

    def current_device(self) -> int:
        """The only one."""
        return 0

    def memory_stats_as_nested_dict(self, device: int) -> dict[str, object]:
        """As torch's, the keys that are read."""
        self.reads += 1
        return {
            "allocated_bytes": {"all": {"current": self.allocated, "peak": self.allocated_peak}},
            "reserved_bytes": {"all": {"current": self.reserved, "peak": self.reserved_peak}},
            "num_alloc_retries": self.retries,
            "num_ooms": self.ooms,
        }

    def reset_peak_memory_stats(self, device: int) -> None:
        """As torch's."""
        self.resets += 1
        self.allocated_peak, self.reserved_peak = self.allocated, self.reserved

    def get_device_properties(self, device: int) -> object:
        """As torch's: the UUID is an object whose text is bare."""
        return SimpleNamespace(name="NVIDIA H100 80GB HBM3", **({} if self._uuid is None else {"uuid": self._uuid}))

    def get_allocator_backend(self) -> str:
        """As torch's."""
        return self.backend


class Inbox:
    """An agent's end of the socket."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)

    def reports(self) -> list[AllocatorReport]:
        """What has come since the last call."""
        found = []
        while True:
            try:
                found.append(decode(self.socket.recv(1 << 16)))
            except BlockingIOError:
                return found


@contextmanager
def an_inbox(folder: Path) -> Iterator[Inbox]:
    """Open for the length of a test."""
    inbox = Inbox(folder / "agent.sock")
    try:
        yield inbox
    finally:
        inbox.socket.close()


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now
