"""Records that have just ended: an Xid or the driver's accounting may come a moment after the process is gone.

The row of such a record is written again with what came; rows merge, so nothing is lost or counted twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from peakgate.agent.record import Record

KEPT_SECONDS = 30.0
"""Ten times as long as the accounting is asked for a process that has left."""
MAX_RECORDS = 2000
"""Eight GPUs with a hundred short processes each, by every source."""


class RecentlyEnded:
    """The records of the last half minute."""

    def __init__(self) -> None:
        self._records: deque[tuple[float, Record]] = deque(maxlen=MAX_RECORDS)

    def add(self, records: Iterable[Record], moment: float) -> None:
        """Records that ended now."""
        self._forget_old(moment)
        self._records.extend((moment, record) for record in records)

    def on(self, gpu_uuid: str, moment: float) -> Iterator[Record]:
        """Those of a GPU, newest first."""
        self._forget_old(moment)
        return (record for _, record in reversed(self._records) if record.key.gpu_uuid == gpu_uuid)

    def _forget_old(self, moment: float) -> None:
        while self._records and moment - self._records[0][0] > KEPT_SECONDS:
            self._records.popleft()
