"""What was reported of attempts whose processes had ended: when another training of the same attempt begins, it must be said of those too.

Rows merge by the union of their flags, so a row that is sent once more with a flag corrects the one that was stored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from peakgate.agent.peaks import Attempt, Flag, PeakKey, PeakRow
from peakgate.agent.trainings import MAX_ATTEMPTS


@dataclass(slots=True)
class EndedRows:
    """The last ended row of each GPU and source, for whole jobs with a prediction; the attempts longest unseen are forgotten first."""

    _rows: OrderedDict[Attempt, dict[PeakKey, PeakRow]] = field(default_factory=OrderedDict)

    def note(self, rows: Iterable[PeakRow]) -> None:
        """Rows that go out now."""
        for row in rows:
            if row.ended and row.key.pid == 0 and row.key.prediction and Flag.SEVERAL not in row.flags:
                self._rows.setdefault(row.key.attempt, {})[row.key] = row
                self._rows.move_to_end(row.key.attempt)
        while len(self._rows) > MAX_ATTEMPTS:
            self._rows.popitem(last=False)

    def take_several(self, attempt: Attempt) -> list[PeakRow]:
        """The attempt's rows once more, marked; afterwards they are forgotten."""
        return [replace(row, flags=row.flags | Flag.SEVERAL) for row in self._rows.pop(attempt, {}).values()]
