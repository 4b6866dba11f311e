"""The thread that watches: NVML in, spool out. Nothing that happens to NVML or to the disk ends it."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping

import structlog

from peakgate.agent.changes import Changes
from peakgate.agent.errors import NvmlError
from peakgate.agent.helper_reports import FindProcess, HelperSample
from peakgate.agent.hold import Hold
from peakgate.agent.nvml import Nvml
from peakgate.agent.pace import jittered
from peakgate.agent.peaks import JobEvent, PeakRow
from peakgate.agent.reactions import Reaction
from peakgate.agent.recorder import Recorder
from peakgate.agent.sampler import Sampler
from peakgate.agent.samples import Gpu
from peakgate.agent.spool import Spool
from peakgate.agent.tracker import Tracker

FIRST_RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 300.0
"""Between two attempts to open NVML, doubled from the first: a driver that is installed later is found within five minutes."""
HELD_LOOK_SECONDS = 0.2
"""Between two looks whether a pause is over."""
MAX_BACKLOG_ROWS = 10_000
"""Rows kept in memory while the spool's disk fails."""

log = structlog.get_logger("peakgate.agent.watcher")


class Watcher:
    """Runs until `stop` is set. `on_urgent` is called from this thread when something is to be sent at once."""

    def __init__(
        self,
        *,
        nvml: Nvml,
        sampler: Sampler,
        tracker: Tracker,
        spool: Spool,
        stop: threading.Event,
        on_urgent: Callable[[], None] = lambda: None,
        uniform: Callable[[float, float], float] = random.uniform,
        recorder: Recorder | None = None,
        reports: Callable[[FindProcess, Mapping[str, Gpu]], Iterable[HelperSample]] = lambda *_: (),
    ) -> None:
        self._nvml = nvml
        self.sampler = sampler
        self.tracker = tracker
        self._spool = spool
        self._stop = stop
        self._on_urgent = on_urgent
        self._uniform = uniform
        self._recorder = recorder
        self._reports = reports
        self._was_up = False
        self.hold = Hold()
        """Asks this thread to leave NVML alone for a while."""
        self._backlog: tuple[list[PeakRow], list[JobEvent]] = ([], [])
        self.driver_version = ""
        self.is_up = False
        """Whether NVML is open."""
        self.lost_rows = 0
        """Rows that were lost because the spool's disk failed for too long."""
        self.driver_replaced = False
        """Whether the library in this process no longer fits the driver: only a new process can load the new one."""

    @property
    def unwritten(self) -> int:
        """Rows and events that only this process has, because the spool's disk fails."""
        rows, events = self._backlog
        return len(rows) + len(events)

    def run(self) -> None:
        """Watches; opens NVML again with growing waits when it fails as a whole, and leaves it alone while it is asked to."""
        wait_seconds = FIRST_RETRY_SECONDS
        while not (self._stop.is_set() or self.driver_replaced):
            if not self.hold.may_take():
                self._stop.wait(HELD_LOOK_SECONDS)
                continue
            error, looks = self._session()
            if error is None or self.driver_replaced:
                continue
            wait_seconds = FIRST_RETRY_SECONDS if looks else wait_seconds
            if not (error.reaction is Reaction.reopen and looks):
                self._stop.wait(jittered(wait_seconds, self._uniform))
                wait_seconds = min(LONGEST_RETRY_SECONDS, 2 * wait_seconds)

    def run_once(self) -> bool:
        """One look; False when NVML is not there."""
        try:
            self._open()
            self.look()
        except NvmlError as error:
            self._nvml_failed(error)
            return False
        finally:
            self._close()
        return True

    def _session(self) -> tuple[NvmlError | None, int]:
        """NVML from its opening to its closing; why it failed as a whole, if it did, and how often it was looked at."""
        looks = 0
        try:
            self._open()
            while not (self._stop.wait(self.sampler.wait_seconds()) or self.hold.is_on):
                self.look()
                looks += 1
        except NvmlError as error:
            self._nvml_failed(error)
            return error, looks
        finally:
            self._close()
        return None, looks

    def look(self) -> None:
        """Reads what is due and writes down what it brought, all at once.

        The end of a job and what the driver's accounting says of it come by two samples of one look: were the end written first, it could
        be sent, and learned from, without the exact peak.
        """
        brought = Changes()
        try:
            for told in self._reports(self.tracker.find, self.sampler.gpus):
                brought.add(self.tracker.hear(told))
            for sample in self.sampler.poll():
                if self._recorder:
                    self._recorder.write(sample)
                brought.add(self.tracker.take(sample))
        finally:
            self._write(brought)

    def _open(self) -> None:
        self.driver_version = self._nvml.start()
        self.is_up = self._was_up = True
        self.sampler.reopened()
        log.info("nvml open", driver=self.driver_version)

    def _close(self) -> None:
        self._write(Changes(rows=self.tracker.everything()))
        self.sampler.close()
        try:
            if self.is_up:
                self._nvml.stop()
        except NvmlError as error:
            log.warning("nvml not closed", problem=error.message)
        finally:
            self.is_up = False
            self.hold.left()

    def _nvml_failed(self, error: NvmlError) -> None:
        """A driver that does not fit at the first opening never will; one that did fit was replaced, perhaps while we paused."""
        log.error("nvml not available", problem=str(error))
        self.driver_replaced = error.reaction is Reaction.new_process and self._was_up

    def _write(self, changes: Changes) -> None:
        rows, events = self._backlog
        rows, events = rows + changes.rows, events + changes.events
        if not (rows or events):
            return
        try:
            self._spool.put(rows=rows, events=events)
        except sqlite3.Error as error:
            self.lost_rows += max(0, len(rows) - MAX_BACKLOG_ROWS)
            self._backlog = rows[-MAX_BACKLOG_ROWS:], events[-MAX_BACKLOG_ROWS:]
            log.error("spool not written", problem=str(error), kept_in_memory=len(self._backlog[0]))  # noqa: TRY400 (a full disk needs no trace)
            return
        self._backlog = ([], [])
        if changes.are_urgent:
            self._on_urgent()
