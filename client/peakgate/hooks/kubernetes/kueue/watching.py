"""Follows one kind of object: a list, then what changes from its version on; a new list when that version is gone, or from time to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from peakgate.hooks.kubernetes.api_errors import GONE, ApiError
from peakgate.hooks.kubernetes.kueue.cluster import Stream
from peakgate.hooks.kubernetes.objects import Object, at

BOOKMARK = "BOOKMARK"
RESYNC_SECONDS = 600.0
FIRST_SECONDS, MOST_SECONDS = 0.5, 30.0


class Source(Protocol):
    """Where the objects come from."""

    def kueue(self, plural: str) -> tuple[list[Object], str]:
        """All of a kind, and the version of the list. Raises ApiError."""

    def watch(self, plural: str, version: str) -> Stream:
        """What changes from a version on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """`listed`: all objects there are; `changed`: an event's kind and its object; `failed`: a call that failed."""

    listed: Callable[[Sequence[Object]], None]
    changed: Callable[[str, Object], None]
    failed: Callable[[ApiError], None]


class Watching:
    """One kind, until it is stopped."""

    def __init__(self, source: Source, plural: str, handlers: Handlers, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._plural = plural
        self._handlers = handlers
        self._clock = clock
        self._stopped = Event()
        self._stream: Stream | None = None
        self._version = ""
        self._listed_at = float("-inf")

    def run(self) -> None:
        """Blocks until it is stopped."""
        failures = 0
        while not self._stopped.is_set():
            try:
                self._follow()
                failures = 0
            except ApiError as error:
                if error.status == GONE:
                    self._version = ""  # what happened since then is in a new list
                    if not failures:
                        failures = 1
                        continue
                self._handlers.failed(error)
                self._stopped.wait(min(FIRST_SECONDS * 2 ** min(failures, 10), MOST_SECONDS))
                failures += 1

    def stop(self) -> None:
        """Ends the stream too."""
        self._stopped.set()
        stream = self._stream
        if stream is not None:
            stream.stop()

    def _follow(self) -> None:
        if not self._version or self._clock() - self._listed_at >= RESYNC_SECONDS:
            items, self._version = self._source.kueue(self._plural)
            self._listed_at = self._clock()
            self._handlers.listed(items)
        self._stream = self._source.watch(self._plural, self._version)
        if self._stopped.is_set():
            return
        for kind, item in self._stream.events():
            self._version = str(at(item, "metadata", "resourceVersion") or self._version)
            if kind != BOOKMARK:
                self._handlers.changed(kind, item)
            if self._stopped.is_set():
                return
