"""One thread that waits for NVML's events and hands them over; the sampler collects them at its next turn."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import structlog

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_events import EventSet, NvmlEvent

WAIT_MS = 500
"""One wait; the thread ends at most this long after it was told to."""
AFTER_FAILURE_SECONDS = 1.0
"""A set that holds a lost GPU fails at once each time (nvmlEventSetWait_v2 in nvml.h)."""

log = structlog.get_logger("peakgate.agent.events")


class EventThread:
    """The events of the GPUs of the last look around. Started and stopped by the thread that owns NVML."""

    def __init__(self, *, nvml: Nvml) -> None:
        self._nvml = nvml
        self._queue: queue.SimpleQueue[NvmlEvent] = queue.SimpleQueue()
        self._following: frozenset[str] = frozenset()
        self._running: list[tuple[threading.Thread, threading.Event]] = []

    def follow(self) -> None:
        """Listens to the GPUs that are there now; nothing changes while they are the same."""
        if self._nvml.physical_uuids == self._following:
            return
        for _, told_to_end in self._running:
            told_to_end.set()
        try:
            events = self._nvml.open_events()
        except NvmlError as error:
            log.warning("no events", problem=str(error))
            return
        self._following = self._nvml.physical_uuids
        told_to_end = threading.Event()
        thread = threading.Thread(target=self._wait, args=(events, told_to_end), name="nvml-events", daemon=True)
        self._running = [(other, end) for other, end in self._running if other.is_alive()] + [(thread, told_to_end)]
        thread.start()

    def collect(self) -> Iterator[NvmlEvent]:
        """What has come since the last time."""
        while not self._queue.empty():
            yield self._queue.get()

    def stop(self) -> None:
        """Ends; NVML may be closed afterwards."""
        for _, told_to_end in self._running:
            told_to_end.set()
        for thread, _ in self._running:
            thread.join()
        self._running, self._following = [], frozenset()

    def _wait(self, events: EventSet, told_to_end: threading.Event) -> None:
        said: set[int] = set()
        while not told_to_end.is_set():
            try:
                event = events.wait(WAIT_MS)
            except NvmlError as error:
                if error.code not in said:
                    log.warning("events not read", problem=str(error))
                said.add(error.code)
                told_to_end.wait(AFTER_FAILURE_SECONDS)
                continue
            if event:
                self._queue.put(event)
        try:
            events.free()
        except NvmlError as error:
            log.warning("events not freed", problem=str(error))
