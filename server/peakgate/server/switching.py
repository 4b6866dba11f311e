"""An operator goes to another version of the calibration: at any replica, which is the writer from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from peakgate.server.clock import Clock
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.learning import Learner
from peakgate.server.lease import LeaseKeeper
from peakgate.server.store.base import Store
from peakgate.server.store.records import CalibrationRow, Switched
from peakgate.server.versions import switch_note

LONGEST_BY, LONGEST_REASON = 100, 300
"""Characters of a note."""

Choice = Callable[[], CalibrationRow]
"""Finds the version to switch to. Raises PeakgateError when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Who wants it and why, as they say; there is no authentication yet. Raises FIELD_INVALID for what fits no note."""

    by: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        for name, text, longest in (("by", self.by, LONGEST_BY), ("reason", self.reason, LONGEST_REASON)):
            if len(text) > longest or not text.isprintable():
                raise field_error(name, f"is longer than {longest} characters or not one line")


class Switcher:
    """Switches while nothing is learned, under the writer's lease."""

    def __init__(self, store: Store, learner: Learner, keeper: LeaseKeeper, *, clock: Clock) -> None:
        self._clock = clock
        self._store = store
        self._learner = learner
        self._keeper = keeper

    async def promote(self, version: str, wish: Wish) -> Switched:
        """Makes a stored version the active one. Raises CALIBRATION_NOT_FOUND."""
        return await self._switch(lambda: found(self._store.calibration(version), version), wish)

    async def roll_back(self, wish: Wish) -> Switched:
        """Goes back to the newest version before the active one that is kept for a reason. Raises CALIBRATION_ONLY."""
        return await self._switch(self._earlier, wish)

    async def _switch(self, choose: Choice, wish: Wish) -> Switched:
        async with self._learner.paused():
            await self._keeper.keep(by_force=True)
            return await asyncio.to_thread(self._switched, choose, switch_note(at_us=self._clock(), by=wish.by, reason=wish.reason))

    def _switched(self, choose: Choice, note: str) -> Switched:
        lease = self._keeper.lease
        row = choose()
        switched = self._store.promote(row.sequence, note=note, lease=lease) if lease is not None else None
        if switched is None:
            raise PeakgateError("STORE_UNAVAILABLE", "another server switched versions at the same moment", hint="try again")
        return switched

    def _earlier(self) -> CalibrationRow:
        sequence = self._store.active_sequence()
        row = self._store.earlier_calibration(sequence) if sequence else None
        if row is None:
            raise PeakgateError("CALIBRATION_ONLY", "there is no version before the active one")
        return row


def found(row: CalibrationRow | None, version: str) -> CalibrationRow:
    """The row. Raises CALIBRATION_NOT_FOUND when there is none."""
    if row is None:
        text = f"version: {version[:64]!r} is not known"
        raise PeakgateError("CALIBRATION_NOT_FOUND", text, hint="list the known ones with `peakgate calibration list --all`")
    return row
