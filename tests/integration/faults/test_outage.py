"""The service is away, or the clock jumps."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from tests.unit.agent.builders import GIB, GPU, START, a_key, a_list, a_row
from tests.unit.agent.test_sender import ScriptedTransport, stored
from tests.unit.agent.test_tracker import Node

from peakgate.agent.errors import ServiceUnavailableError
from peakgate.agent.peaks import PeakRow
from peakgate.agent.sender import LONGEST_BACKOFF_SECONDS, Sender
from peakgate.agent.spool import Spool
from peakgate.agent.wire import NodeIdentity
from peakgate.v1 import telemetry_service_pb2 as pb

HOUR_SECONDS = 3600.0
GPUS = [f"GPU-{number}" for number in range(8)]
PIDS = range(1, 5)


def rows_at(time: float) -> list[PeakRow]:
    """Four processes on each of eight GPUs, growing with time."""
    height = int(time - START)
    return [a_row(a_key(pid=pid, gpu_uuid=gpu), peak_bytes=height * pid + 1, time=time) for gpu in GPUS for pid in PIDS]


async def test_an_hour_without_the_service_costs_no_row_and_no_space(tmp_path: Path) -> None:
    """The spool holds one row a process however long it takes; few attempts are made; at the end all heights arrive."""
    spool = Spool(path=tmp_path / "agent.db")
    now, waits = START, []

    def answer(batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        if now < START + HOUR_SECONDS:
            raise ServiceUnavailableError("away")
        return stored(batch)

    async def sleep(seconds: float) -> None:
        """The hour goes by; a sample every ten seconds of it reaches the spool."""
        nonlocal now
        waits.append(seconds)
        end = now + seconds
        while now + 10 < end:
            now += 10
            spool.put(rows=rows_at(now))
        now = end

    spool.put(rows=rows_at(now))
    transport = ScriptedTransport(answer)
    node = NodeIdentity(node="node-1", agent_version="1")
    draw = random.Random(1)
    sender = Sender(spool=spool, transport=transport, stub=None, node=lambda: node, interval_seconds=30.0, uniform=draw.uniform)  # type: ignore[arg-type]  # there are no events
    await sender.drain_patiently(sleep=sleep, given_up=lambda: False)
    assert spool.waiting() == 0
    spool.close()
    assert START + HOUR_SECONDS <= now <= START + HOUR_SECONDS + LONGEST_BACKOFF_SECONDS
    assert len(waits) < 60
    assert len(transport.batches[-1].peaks) == len(GPUS) * len(PIDS)
    assert (tmp_path / "agent.db").stat().st_size < 100_000
    last_seen = max(each.last_time.seconds for each in transport.batches[-1].peaks) - int(START)
    assert {(each.pid, int(each.peak_bytes)) for each in transport.batches[-1].peaks} == {(pid, last_seen * pid + 1) for pid in PIDS}


def test_a_clock_that_jumps_by_an_hour_changes_no_peak(tmp_path: Path) -> None:
    """Forwards and back: the heights stay, nothing ends, and no row lasts for a negative time."""
    node = Node(tmp_path)
    node.add(7)
    for offset, height in ((0, 10), (1, 20), (3602, 30), (3603, 25), (4, 40), (-3595, 35), (6, 15)):
        changes = node.tracker.take(a_list(START + offset, {7: height * GIB}))
        assert changes.events == []
    row = node.rows()[GPU, "402", 7, 100, "sampled"]
    assert (row.peak_bytes, row.ended, row.samples) == (40 * GIB, False, 7)
    assert row.first_time <= row.peak_time <= row.last_time


def test_a_spooled_row_survives_a_jump_too(tmp_path: Path) -> None:
    """Times merge by minimum and maximum; the higher peak stays whichever clock it carries."""
    spool = Spool(path=tmp_path / "agent.db")
    spool.put(rows=[a_row(peak_bytes=40 * GIB, time=START)])
    spool.put(rows=[replace(a_row(peak_bytes=35 * GIB, time=START + HOUR_SECONDS), first_time=START + HOUR_SECONDS)])
    spool.put(rows=[a_row(peak_bytes=30 * GIB, time=START - HOUR_SECONDS)])
    (row,) = [peak.row for peak in spool.batch(limit=9, up_to_version=9)]
    spool.close()
    assert (row.peak_bytes, row.peak_time) == (40 * GIB, START)
    assert (row.first_time, row.last_time) == (START - HOUR_SECONDS, START + HOUR_SECONDS)
