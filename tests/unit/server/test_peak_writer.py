"""Batches of many agents in one transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from tests.unit.server.attempts import a_peak

from peakgate.server import peak_writer
from peakgate.server.errors import PeakgateError
from peakgate.server.peak_writer import PeakWriter
from peakgate.server.store.null import NullStore
from peakgate.server.store.records import PeakRow, PhasePeakRow


class SlowStore(NullStore):
    """Remembers what was committed together; each commit waits for `go`, and fails while `away`."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.began = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.away = False

    def merge_peaks(self, rows: Sequence[PeakRow], phases: Sequence[PhasePeakRow] = ()) -> None:
        """Waits, then fails or remembers."""
        self.began.release()
        assert self.go.acquire(timeout=10)
        if self.away:
            raise PeakgateError("STORE_UNAVAILABLE", "away")
        self.commits.append([row.job for row in rows])


def writes(writer: PeakWriter, *jobs: str) -> list[asyncio.Task[None]]:
    """A batch of one row for each job, all at once."""
    return [asyncio.create_task(writer.write([a_peak(job=job)], [])) for job in jobs]


async def began(store: SlowStore) -> None:
    """Waits until a commit has begun."""
    assert await asyncio.to_thread(store.began.acquire, timeout=10)


async def test_what_comes_during_a_commit_is_the_next_one_and_is_answered_after_it() -> None:
    """The first batch alone, then all that came meanwhile in one transaction; nobody is answered before the commit."""
    store = SlowStore()
    writer = PeakWriter(store)
    first = writes(writer, "0")
    await began(store)
    others = writes(writer, *map(str, range(1, 30)))
    await asyncio.sleep(0.05)
    assert not any(task.done() for task in (*first, *others))
    store.go.release()
    await asyncio.gather(*first)
    await began(store)
    assert not any(task.done() for task in others)
    store.go.release()
    await asyncio.gather(*others)
    assert store.commits == [["0"], [str(number) for number in range(1, 30)]]


async def test_a_failed_commit_fails_its_batches_and_no_others() -> None:
    """Each agent is told and sends again; the writer goes on."""
    store = SlowStore()
    writer = PeakWriter(store)
    store.away = True
    failed = writes(writer, "0", "1")
    store.go.release()
    found = await asyncio.gather(*failed, return_exceptions=True)
    assert [type(error) for error in found] == [PeakgateError, PeakgateError]
    store.away = False
    store.go.release()
    await writer.write([a_peak(job="2")], [])
    assert store.commits == [["2"]]


async def test_a_call_that_is_cancelled_takes_no_other_with_it() -> None:
    """Its rows are committed with the rest, and nobody hears of them."""
    store = SlowStore()
    writer = PeakWriter(store)
    cancelled, kept = writes(writer, "0", "1")
    await began(store)
    cancelled.cancel()
    await asyncio.sleep(0)
    store.go.release()
    await kept
    assert store.commits == [["0", "1"]]


async def test_a_group_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other writers of the database get their turn between two groups."""
    monkeypatch.setattr(peak_writer, "LARGEST_GROUP_ROWS", 2)
    store = SlowStore()
    store.go.release(3)
    await asyncio.gather(*writes(PeakWriter(store), *"01234"))
    assert store.commits == [["0", "1"], ["2", "3"], ["4"]]


async def test_a_full_queue_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded while the database does not keep up, and there is room again afterwards."""
    monkeypatch.setattr(peak_writer, "LONGEST_QUEUE_ROWS", 2)
    store = SlowStore()
    writer = PeakWriter(store)
    waiting = writes(writer, "0", "1")
    await asyncio.sleep(0)
    with pytest.raises(PeakgateError, match="wait for the database") as caught:
        await writer.write([a_peak(job="2")], [])
    assert caught.value.reason == "STORE_UNAVAILABLE"
    store.go.release(2)
    await asyncio.gather(*waiting)
    await writer.write([a_peak(job="3")], [])
    assert store.commits == [["0", "1"], ["3"]]
