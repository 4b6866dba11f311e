"""Starts a shadow, ends it, promotes it at an operator's word; after a change of the memory model it tells one what was observed before."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from peakgate.calibration import Calibrator, Observation, Snapshot, Trial, in_order
from peakgate.calibration.trial import ROWS, ROWS_AGAINST_NOTHING
from peakgate.server.clock import Clock
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.learning import Learner
from peakgate.server.logs import Logger
from peakgate.server.margin import History, Margin, margin_from
from peakgate.server.memory import MemoryModel
from peakgate.server.retell import Teller
from peakgate.server.shadow import Shadow, check_is_whole
from peakgate.server.store.base import Store
from peakgate.server.store.records import OPEN, CalibrationRow, Lease
from peakgate.server.switching import found

EVERYTHING = ((1, OPEN),)

PROGRESS_ROWS = 1000
"""Between two lines of the log."""

AT_A_STRETCH_SECONDS = 0.02
"""Work between two rests of the same length: answers wait for one interpreter, and half of it stays theirs."""


class StoppedError(Exception):
    """The service ends before the work does; it begins again at the next start."""


@dataclass(slots=True)
class Pace:
    """Lets others work, tells how far it is, and ends early when the service does."""

    log: Logger
    stopping: threading.Event
    _since: float = field(default_factory=time.perf_counter)
    _rows: int = 0

    def step(self) -> None:
        """One row is done. Raises StoppedError."""
        if self.stopping.is_set():
            raise StoppedError
        self._rows += 1
        if self._rows % PROGRESS_ROWS == 0:
            self.log.info("history is told again", rows=self._rows)
        worked_seconds = time.perf_counter() - self._since
        if worked_seconds >= AT_A_STRETCH_SECONDS:
            time.sleep(worked_seconds)
            self._since = time.perf_counter()


class ShadowStarter:
    """What is done to the shadow beside learning."""

    def __init__(self, learner: Learner, store: Store, memory: MemoryModel, *, coverage: float, clock: Clock, log: Logger) -> None:
        self._learner = learner
        self._store = store
        self._memory = memory
        self._coverage = coverage
        self._clock = clock
        self._log = log
        self._stopping = threading.Event()
        self._has_retold = False

    def close(self) -> None:
        """Ends what is under way."""
        self._stopping.set()

    async def retell(self) -> None:
        """Makes a shadow of everything that was observed, where the active calibration began anew without it. Once in a process."""
        learner = self._learner
        is_wanted = learner.margin.history is History.WANTED and learner.shadows.current is None
        if self._has_retold or not is_wanted or not learner.writes:
            return
        self._has_retold = True
        nothing = Calibrator(epoch=self._memory.version).snapshot()
        try:
            await learner.alone(lambda lease: self._store.end_shadow(lease=lease), by_force=False)  # one that this model cannot read
            await self._start_of_everything(ROWS_AGAINST_NOTHING, against=nothing)
        except StoppedError:
            self._has_retold = False
        except PeakgateError:
            self._has_retold = False
            raise

    async def start(self, version: str) -> CalibrationRow:
        """A shadow from a stored version, or from everything that was observed. Raises PeakgateError when it cannot be."""
        if not version:
            await self._start_of_everything(ROWS)
        else:
            base = self._base(found(await asyncio.to_thread(self._store.calibration, version), version), version)
            shadow = self._of(margin_from(base.body), ROWS)
            await self._learner.alone(lambda lease: self._store_shadow(shadow, lease, base=base.sequence))
        row = await asyncio.to_thread(self._store.shadow)
        if row is None:
            raise PeakgateError("CALIBRATION_EMPTY", "nothing was observed yet, so there is nothing to learn again")
        return row

    async def stop(self) -> CalibrationRow:
        """Ends the shadow. Raises CALIBRATION_NOT_FOUND when there is none."""
        place = await self._learner.alone(lambda lease: self._store.end_shadow(lease=lease))
        row = await asyncio.to_thread(self._store.calibration_at, place)
        if row is None:
            raise PeakgateError("CALIBRATION_NOT_FOUND", "there is no shadow")
        return row

    async def promote(self, shadow: str, *, why: str) -> str:
        """Makes the shadow of that name the active version, whatever its trial says. Returns the name of the one that was active.

        `why` follows its name in the note. Raises CALIBRATION_NOT_FOUND.
        """
        learner = self._learner
        before = await asyncio.to_thread(self._store.calibration_at, learner.sequence)

        def promoted(lease: Lease) -> bool:
            current = learner.shadows.current
            is_it = current is not None and current.version == shadow
            return is_it and learner.shadows.promote(learner.row_of, learner.sequence, lease, why=why)

        if not await learner.alone(promoted):
            raise PeakgateError("CALIBRATION_NOT_FOUND", f"version: {shadow[:64]!r} is no shadow any more")
        return before.version if before is not None else ""

    async def _start_of_everything(self, rows_needed: int, *, against: Snapshot | None = None) -> None:
        """`against`: a calibration that has seen none of it, beside which what is told is scored."""
        shadow = self._of(Margin(Calibrator(epoch=self._memory.version), history=History.RETOLD), rows_needed)
        place = self._learner.sequence
        other = await asyncio.to_thread(self._store.shadow_place)
        if other:
            raise _exists()
        rows = await asyncio.to_thread(self._tell, shadow, 0, against, Pace(self._log, self._stopping))
        if not rows:
            return

        def rest(lease: Lease) -> None:
            self._tell(shadow, place, against, None)
            self._store_shadow(shadow, lease, base=0)

        await self._learner.alone(rest, by_force=against is None)

    def _tell(self, shadow: Shadow, after: int, against: Snapshot | None, pace: Pace | None) -> int:
        """Tells a shadow what was observed after a version; returns how many rows it took."""
        teller = Teller(self._memory, everything=True)
        rows = self._store.told_of(EVERYTHING, after=after)
        observations = in_order(_paced(teller.observations(rows), pace))
        for observation in _paced(observations, pace):
            if against is not None:
                shadow.score(against, observation)
            else:
                shadow.take(observation)
        if rows:
            self._log.info("history was told again", rows=len(observations), retold=teller.retold, left_out=teller.left_out)
        return len(observations)

    def _of(self, margin: Margin, rows_needed: int) -> Shadow:
        return Shadow(margin=margin, trial=Trial(coverage=self._coverage, rows_needed=rows_needed))

    def _store_shadow(self, shadow: Shadow, lease: Lease, *, base: int) -> None:
        new = shadow.row(created_us=self._clock())
        if not self._store.start_shadow(new, base=base, expected_sequence=self._learner.sequence, lease=lease):
            raise _exists()

    def _base(self, row: CalibrationRow, version: str) -> CalibrationRow:
        if row.state != "retired":
            raise field_error("version", f"{version} is the {row.state} version; name an earlier one, or none")
        check_is_whole(row)
        try:
            epoch = margin_from(row.body).calibrator.epoch
        except ValueError:
            epoch = ""
        if epoch != self._memory.version:
            raise field_error("version", f"{version} was learned under another memory model; name none, and everything is told again")
        return row


def _paced(observations: Iterable[Observation], pace: Pace | None) -> Iterable[Observation]:
    for observation in observations:
        if pace is not None:
            pace.step()
        yield observation


def _exists() -> PeakgateError:
    return PeakgateError(
        "SHADOW_EXISTS", "another shadow learns already, or the calibration has moved on", hint="end it with --stop, or ask again"
    )
