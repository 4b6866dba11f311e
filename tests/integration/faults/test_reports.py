"""Reports that contradict each other, or that nobody should send."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from tests.databases import sqlite_in
from tests.integration.service.conftest import Service, _start, refusal_of
from tests.unit.agent.builders import GIB, GPU, OTHER_GPU, a_key, a_row

from peakgate.agent.peaks import PeakRow
from peakgate.agent.sender import Sender
from peakgate.agent.spool import Spool
from peakgate.agent.transport import UnaryTransport
from peakgate.agent.wire import NodeIdentity, batch_message

NODE = NodeIdentity(node="node-1", agent_version="1")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service on the test's own database."""
    async with _start(sqlite_in(tmp_path)("store")) as running:
        yield running


def stored(folder: Path) -> list[tuple[Any, ...]]:
    """GPU, job, prediction, process and peak in GiB of every row."""
    with closing(sqlite3.connect(folder / "store.sqlite3")) as connection:
        query = "SELECT gpu_uuid, job, prediction, pid, peak_bytes FROM peaks ORDER BY 1, 2, 3, 4"
        return [(*row[:4], row[4] / GIB) for row in connection.execute(query)]


async def deliver(service: Any, folder: Path, rows: list[PeakRow], *, node: NodeIdentity = NODE) -> Sender:
    """What an agent does with these rows, from its spool on."""
    spool = Spool(path=folder / f"{time.monotonic_ns()}.db")
    spool.put(rows=rows)
    transport = UnaryTransport(stub=service.telemetry)
    sender = Sender(spool=spool, transport=transport, stub=service.telemetry, node=lambda: node, interval_seconds=1)
    await sender.drain()
    assert spool.waiting() == 0
    spool.close()
    return sender


async def test_two_agents_with_one_node_name_disturb_nothing(service: Any, tmp_path: Path) -> None:
    """Two hosts called node-1: rows are told apart by the GPU's UUID, and both are stored. Two agents on one host: they merge."""
    one, other = a_row(a_key(boot_id="boot-1")), a_row(a_key(boot_id="boot-2", gpu_uuid=OTHER_GPU), peak_bytes=2 * GIB)
    for rows in ([one], [other], [one], [a_row(peak_bytes=3 * GIB)]):
        await deliver(service, tmp_path, rows)
    assert stored(tmp_path) == [(GPU, "402", "predictions/p1", 4242, 3.0), (OTHER_GPU, "402", "predictions/p1", 4242, 2.0)]


async def test_a_job_id_that_is_used_again_is_another_job(service: Any, tmp_path: Path) -> None:
    """Job 402 under another prediction, or as another process: neither takes the other's height."""
    again = replace_prediction(a_row(a_key(pid=77), peak_bytes=2 * GIB), "predictions/p2")
    await deliver(service, tmp_path, [a_row(peak_bytes=50 * GIB), again])
    assert stored(tmp_path) == [(GPU, "402", "predictions/p1", 4242, 50.0), (GPU, "402", "predictions/p2", 77, 2.0)]


def replace_prediction(row: PeakRow, prediction: str) -> PeakRow:
    """The same row under another prediction."""
    return replace(row, key=replace(row.key, prediction=prediction))


async def test_ten_thousand_rows_go_in_batches_and_a_batch_of_them_is_refused(service: Any, tmp_path: Path) -> None:
    """The agent cuts its spool into batches; who sends all at once gets a word, and nothing of it is stored."""
    rows = [a_row(a_key(pid=pid)) for pid in range(1, 10_001)]
    message = batch_message(node=NODE, rows=rows, cluster="alpha", boot_id="boot-1", sequence=1)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.telemetry.ReportPeaks(message)
    assert refusal_of(caught.value).reason == "BATCH_TOO_LARGE"
    assert stored(tmp_path) == []
    sender = await deliver(service, tmp_path, rows)
    assert (sender.delivery.stored, sender.delivery.batches) == (10_000, 40)
    assert len(stored(tmp_path)) == 10_000


async def test_a_peak_above_the_card_is_dropped_and_counted(service: Any, tmp_path: Path) -> None:
    """The agent does not send it again; the good row beside it is stored."""
    sender = await deliver(service, tmp_path, [a_row(peak_bytes=90 * GIB), a_row(a_key(pid=5))])
    assert (dict(sender.delivery.refused), sender.delivery.stored) == ({"PEAK_ABOVE_CARD": 1}, 1)
    assert stored(tmp_path) == [(GPU, "402", "predictions/p1", 5, 1.0)]


async def test_a_report_for_another_node_is_refused(service: Any, tmp_path: Path) -> None:
    """Row by row: nobody reports for a node that is not his."""
    message = batch_message(node=NODE, rows=[a_row(), a_row(a_key(pid=5))], cluster="alpha", boot_id="boot-1", sequence=1)
    message.peaks[0].node = "node-2"
    answer = await service.telemetry.ReportPeaks(message)
    assert [(each.index, each.reason) for each in answer.refused] == [(0, "NODE_MISMATCH")]
    assert stored(tmp_path) == [(GPU, "402", "predictions/p1", 5, 1.0)]


async def test_an_agent_whose_clock_is_ahead_does_not_hold_up_the_learning(service: Any, tmp_path: Path) -> None:
    """Nothing was seen after the moment of receipt, whatever the node's clock says."""
    await deliver(service, tmp_path, [a_row(time=time.time() + 3600)])
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as connection:
        (last_us,) = connection.execute("SELECT last_us FROM peaks").fetchone()
    assert last_us <= time.time_ns() // 1000
