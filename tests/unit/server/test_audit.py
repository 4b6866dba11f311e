"""The queue between Predict and the database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from peakgate.server.audit import LATE_SECONDS, AuditQueue
from peakgate.server.errors import PeakgateError
from peakgate.server.logs import QuietLogger
from peakgate.server.metrics import NullMetrics
from peakgate.server.store.null import NullStore
from peakgate.server.store.records import PredictionContent, PredictionRow


class RecordingStore(NullStore):
    """Remembers rows; fails while `away`."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.away = False

    def add_predictions(self, rows: Sequence[PredictionRow]) -> None:
        """Fails, or remembers."""
        if self.away:
            raise PeakgateError("STORE_UNAVAILABLE", "away")
        self.rows += [row.prediction for row in rows]


def a_row(name: str) -> PredictionRow:
    """A row whose request id is its name."""
    content = PredictionContent(
        job=b"",
        job_digest="",
        job_name="",
        verdict="ADMIT",
        group="",
        required_bytes=0,
        device_bytes=0,
        bound_bytes=0,
        total_bytes=0,
        model_version="",
        calibration_version="",
        answer=b"",
    )
    return PredictionRow(prediction=name, created_us=0, request_id=name, request_digest="", content=content)


def a_queue(store: RecordingStore, limit: int = 100) -> AuditQueue:
    """A queue with its writer running."""
    queue = AuditQueue(store, limit=limit, metrics=NullMetrics(), log=QuietLogger())
    queue.start()
    return queue


async def test_a_row_can_be_read_while_it_waits_and_is_written_in_order() -> None:
    """By name and by request id; after the flush the store has it."""
    store = RecordingStore()
    queue = a_queue(store)
    for name in ("a", "b"):
        assert queue.put(a_row(name))
    assert queue.by_name("a") is not None
    assert queue.by_request("b") is not None
    await queue.flush()
    assert store.rows == ["a", "b"]
    assert queue.by_name("a") is None
    assert await queue.stop(1) == 0


async def test_a_full_queue_refuses_a_row() -> None:
    """Memory is bounded; the caller says that nothing was stored."""
    store = RecordingStore()
    store.away = True
    queue = a_queue(store, limit=1)
    assert queue.put(a_row("a"))
    assert not queue.put(a_row("b"))
    assert await queue.stop(0) == 1


async def test_rows_outlive_a_database_that_goes_away() -> None:
    """They wait, a flush says why it cannot be done, and they are written when the database is back."""
    store = RecordingStore()
    store.away = True
    queue = a_queue(store)
    queue.put(a_row("a"))
    with pytest.raises(PeakgateError):
        await queue.flush()
    assert not queue.healthy
    store.away = False
    async with asyncio.timeout(5):
        while not queue.healthy:  # noqa: ASYNC110 - the queue tells nobody else
            await asyncio.sleep(0.01)
    await queue.flush()
    assert store.rows == ["a"]
    assert await queue.stop(1) == 0


async def test_a_row_that_waits_too_long_is_noticed_before_its_write_fails() -> None:
    """A database may be slow without failing: then the clock says so."""
    now = [0.0]
    queue = AuditQueue(RecordingStore(), limit=9, metrics=NullMetrics(), log=QuietLogger(), monotonic=lambda: now[0])
    assert queue.writable
    queue.put(a_row("a"))
    assert queue.writable
    now[0] = LATE_SECONDS + 0.1
    assert not queue.writable
    queue.start()
    await queue.flush()
    assert queue.writable
    assert await queue.stop(1) == 0


async def test_rows_that_a_stop_cannot_write_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """How many, and which."""
    store = RecordingStore()
    store.away = True
    queue = a_queue(store)
    for name in ("a", "b", "c"):
        queue.put(a_row(name))
    assert await queue.stop(0.05) == 3
    assert "'rows': 3" in caplog.text
    assert "'first': 'a'" in caplog.text


async def test_a_stop_writes_what_waits() -> None:
    """The last answers before a stop are kept."""
    store = RecordingStore()
    queue = a_queue(store)
    queue.put(a_row("a"))
    assert await queue.stop(5) == 0
    assert store.rows == ["a"]
