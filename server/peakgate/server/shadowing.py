"""The shadow of a learner: read from the store, brought up to date, promoted when its trial says so. Called off the event loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peakgate.calibration import Calibrator, Snapshot, in_order
from peakgate.server.clock import Clock
from peakgate.server.logs import Logger
from peakgate.server.margin import History, Margin
from peakgate.server.memory import MemoryModel
from peakgate.server.retell import Teller
from peakgate.server.shadow import Shadow, in_words, shadow_from
from peakgate.server.store.base import Store
from peakgate.server.store.records import PROMOTED, CalibrationRow, Lease

RowOf = Callable[[Margin], CalibrationRow]
"""A margin as the active version that it is to become."""


class Shadowing:
    """Holds the shadow that is in the store, if there is one that this version can read. `promotes`: by itself, when all rules hold."""

    def __init__(self, store: Store, memory: MemoryModel, *, promotes: bool, clock: Clock, log: Logger) -> None:
        self._store = store
        self._memory = memory
        self._promotes = promotes
        self._clock = clock
        self._log = log
        self._seen = (0, 0)
        self._remade = 0
        self.current: Shadow | None = None

    @property
    def seen(self) -> tuple[int, int, int]:
        """Places of the shadow and of the active version that it was read beside, and how often one was made again: what is shown of it
        moves with them."""
        return (*self._seen, self._remade)

    @property
    def snapshot(self) -> Snapshot | None:
        """What the shadow would say at this moment."""
        return self.current.margin.calibrator.snapshot() if self.current is not None else None

    def load(self, active_sequence: int) -> None:
        """Reads the shadow beside an active version, when either is another one than before. Raises STORE_UNAVAILABLE."""
        now = self._store.shadow_place(), active_sequence
        if now != self._seen:
            row = self._store.shadow() if now[0] else None
            self.current = self._read(row, active_sequence) if row is not None else None
            _ = self.snapshot  # made here, off the event loop
            self._seen = now

    def candidate(self) -> Shadow | None:
        """An equal one that learns beside a candidate of the active version."""
        return self.current.copy() if self.current is not None else None

    def row(self, shadow: Shadow | None) -> CalibrationRow | None:
        """It as the store holds it."""
        return shadow.row(created_us=self._clock()) if shadow is not None else None

    def catch_up(self, active_sequence: int, lease: Lease) -> None:
        """Makes a shadow again that has not learned all that it should: as if nothing had come late to it, to the last bit."""
        shadow = self.current
        if shadow is None or not shadow.behind:
            return
        history = shadow.margin.history
        teller = Teller(self._memory, everything=history is History.RETOLD)
        margin = Margin(Calibrator(epoch=self._memory.version), history=history)
        for observation in in_order(teller.observations(self._store.told_of(shadow.ranges))):
            margin.learn(observation)
        self.current = replace(shadow, margin=margin, behind=False)
        self._remade += 1
        _ = self.snapshot
        self._store.keep_shadow(self.current.row(created_us=self._clock()), expected_sequence=active_sequence, lease=lease)

    def promote_if_shown(self, row_of: RowOf, active_sequence: int, lease: Lease) -> bool:
        """Makes the shadow the active version when every rule holds. Returns whether it has become it."""
        shadow = self.current
        if not self._promotes or shadow is None or shadow.behind or not shadow.trial.passed:
            return False
        return self.promote(row_of, active_sequence, lease, why=f" by its trial: {in_words(shadow.trial)}")

    def promote(self, row_of: RowOf, active_sequence: int, lease: Lease, *, why: str) -> bool:
        """Makes the shadow the active version. False when somebody else was first."""
        shadow = self.current
        if shadow is None:
            return False
        self.catch_up(active_sequence, lease)
        new = replace(row_of(self.current.margin if self.current else shadow.margin), kind=PROMOTED, note=f"{shadow.version} promoted{why}")
        done = self._store.promote_shadow(shadow.sequence, new, expected_sequence=active_sequence, lease=lease)
        if done:
            self._log.info("shadow promoted", shadow=shadow.version, why=why)
        return done

    def _read(self, row: CalibrationRow, active_sequence: int) -> Shadow | None:
        try:
            shadow = shadow_from(row, active_sequence=active_sequence)
        except ValueError as error:
            self._log.warning("shadow cannot be read", shadow=row.version, cause=str(error))
            return None
        if shadow.margin.calibrator.epoch == self._memory.version:
            return shadow
        self._log.warning("shadow of another memory model", shadow=row.version, found=shadow.margin.calibrator.epoch)
        return None
