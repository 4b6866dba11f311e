"""Records that have just ended."""

from __future__ import annotations

from tests.unit.agent.builders import GPU, OTHER_GPU, a_gpu, a_key

from peakgate.agent.quality import Quality
from peakgate.agent.recent import KEPT_SECONDS, MAX_RECORDS, RecentlyEnded
from peakgate.agent.record import Record


def a_record(pid: int, gpu_uuid: str = GPU) -> Record:
    """A record that has ended."""
    return Record(
        key=a_key(pid=pid, gpu_uuid=gpu_uuid),
        gpu=a_gpu(gpu_uuid),
        uid=1000,
        peak_bytes=1,
        peak_time=0.0,
        first_time=0.0,
        last_time=0.0,
        quality=Quality(usable_bytes=1),
        ended=True,
    )


def test_the_newest_of_a_gpu_come_first() -> None:
    """The same pid may have been used twice; another GPU's are not among them."""
    recent = RecentlyEnded()
    recent.add([a_record(7), a_record(8, OTHER_GPU)], 0.0)
    recent.add([a_record(9)], 1.0)
    assert [record.key.pid for record in recent.on(GPU, 2.0)] == [9, 7]


def test_old_ones_are_forgotten_also_when_nobody_asks() -> None:
    """A node where no Xid ever comes and accounting is off keeps the last half minute and no more."""
    recent = RecentlyEnded()
    for second in range(1000):
        recent.add([a_record(second)], float(second))
    assert len(recent._records) <= KEPT_SECONDS + 1


def test_a_burst_is_bounded() -> None:
    """However many end at once."""
    recent = RecentlyEnded()
    recent.add((a_record(pid) for pid in range(MAX_RECORDS + 500)), 0.0)
    assert len(list(recent.on(GPU, 0.0))) == MAX_RECORDS
