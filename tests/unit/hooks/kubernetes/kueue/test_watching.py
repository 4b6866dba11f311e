"""Lists, watches, bookmarks and versions that are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Event

import pytest

from peakgate.hooks.kubernetes.api_errors import GONE, ApiError
from peakgate.hooks.kubernetes.kueue.watching import Handlers, Watching
from peakgate.hooks.kubernetes.kueue.work_queue import WorkQueue

Item = Mapping[str, object]


def an_item(version: int, name: str = "a") -> Item:
    """An object of a version."""
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Script:
    """A source that plays streams one after another; each ends the watch at last."""

    def __init__(self, *streams: list[tuple[str, Item] | ApiError]) -> None:
        self.streams = list(streams)
        self.asked: list[str] = []
        self.changed: list[tuple[str, str]] = []
        self.failed: list[int] = []
        self.watching = Watching(
            self, "workloads", Handlers(listed=lambda items: self.asked.append("list"), changed=self._change, failed=self._fail)
        )

    def _change(self, kind: str, item: Item) -> None:
        metadata = item["metadata"]
        assert isinstance(metadata, dict)
        self.changed.append((kind, metadata["resourceVersion"]))

    def _fail(self, error: ApiError) -> None:
        self.failed.append(error.status)

    def kueue(self, plural: str) -> tuple[list[Item], str]:
        """A list of version 10."""
        return [an_item(10)], "10"

    def watch(self, plural: str, version: str) -> Script:
        """The next stream."""
        self.asked.append(version)
        if not self.streams:
            self.watching.stop()
        return self

    def events(self) -> Iterator[tuple[str, Item]]:
        """What the stream plays."""
        for each in self.streams.pop(0) if self.streams else []:
            if isinstance(each, ApiError):
                raise each
            yield each

    def stop(self) -> None:
        """Nothing is open."""


def test_a_watch_goes_on_where_it_ended() -> None:
    """After an event, after a bookmark, and after a connection that broke: from the last version, without a new list."""
    script = Script([("ADDED", an_item(11))], [("BOOKMARK", an_item(15))], [("MODIFIED", an_item(16)), ApiError("broken")])
    script.watching.run()
    assert script.asked == ["list", "10", "11", "15", "16"]
    assert script.changed == [("ADDED", "11"), ("MODIFIED", "16")]
    assert script.failed == [0]


def test_a_version_that_is_gone_is_listed_at_once() -> None:
    """410 is no failure: the list has what was missed; a second one at once is one, and waits."""
    script = Script([ApiError("gone", GONE)], [ApiError("gone", GONE)])
    script.watching.run()
    assert script.asked == ["list", "10", "list", "10", "list", "10"]
    assert script.failed == [GONE]


def test_a_queue_holds_a_key_once_and_the_earliest_time_counts() -> None:
    """Keys that fail come later each time, until they are done."""
    now = [0.0]
    queue = WorkQueue(clock=lambda: now[0])
    stopped = Event()
    queue.add("a", 5)
    queue.add("a")
    queue.add("b", 1)
    assert (len(queue), queue.get(stopped)) == (2, "a")
    now[0] = 1.0
    assert queue.get(stopped) == "b"
    waits: list[float] = []
    for _ in range(12):
        queue.failed("a")
        waits.append(round(queue._due.pop("a") - now[0], 6))
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.2, 60.0)
    queue.forget("a")
    queue.failed("a")
    assert queue._due["a"] == pytest.approx(1.2)
    stopped.set()
    assert queue.get(stopped) is None
