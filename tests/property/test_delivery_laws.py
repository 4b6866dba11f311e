"""300 random histories of agents, spools, wire and store: delivered late, twice and out of order, they end in the same database."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.agent.builders import START, a_key, a_row
from tests.unit.server.attempts import SUBJECT
from tests.unit.server.stored import MODEL, a_prediction

from peakgate.agent.peaks import Allocator, Flag, JobEvent, PeakRow
from peakgate.agent.spool import Spool
from peakgate.agent.wire import NodeIdentity, batch_message, event_message
from peakgate.server.observe import Observed, observe
from peakgate.server.store.records import TERMINAL_EVENTS
from peakgate.server.store.sql import SqlStore, open_store
from peakgate.server.subjects import subject_text
from peakgate.server.telemetry import read_event, sort_out
from peakgate.v1.allocator_report import PhaseReport
from peakgate.v1.telemetry_service_pb2 import ReportJobEventRequest, ReportPeaksRequest

HISTORIES = 300
AT_ONCE = 10
"""Jobs that the same two nodes run at one time, so that a batch holds rows of several."""
NODES = ("n1", "n2")
CARD = 80_000
FLAGS = (Flag(0),) * 12 + (Flag.FLUCTUATING, Flag.XID, Flag.OOM, Flag.CENSORED, Flag.PREALLOCATED)
Message = ReportPeaksRequest | ReportJobEventRequest
Change = PeakRow | JobEvent


@dataclass(frozen=True)
class Seen:
    """What one node's agent came to know, in its order."""

    node: str
    change: Change


def grown(row: PeakRow, draw: random.Random) -> PeakRow:
    """The same row some samples later: figures only grow, an end stays one."""
    later = row.last_time + draw.randint(1, 30)
    peak = max(row.peak_bytes, draw.randint(1, CARD))
    allocated = max(row.allocator.allocated_bytes, draw.randint(0, peak)) if row.key.source == "torch" else 0
    phase = PhaseReport(
        phase=draw.choice(("forward", "backward")), allocated_bytes=draw.randint(0, CARD), reserved_bytes=draw.randint(0, CARD)
    )
    return replace(
        row,
        peak_bytes=peak,
        peak_time=later if peak > row.peak_bytes else row.peak_time,
        last_time=later,
        samples=row.samples + draw.randint(1, 9),
        gaps=row.gaps + draw.randint(0, 1),
        flags=row.flags | draw.choice(FLAGS),
        ended=row.ended or draw.random() < 0.2,
        allocator=Allocator(
            allocated_bytes=allocated,
            reserved_bytes=max(row.allocator.reserved_bytes, allocated),
            steps_done=row.allocator.steps_done + draw.randint(0, 2),
            longest_sequence=max(row.allocator.longest_sequence, draw.choice((0, 512))),
            phases=(phase,) if row.key.source == "torch" else (),
        ),
    )


def a_history(prediction: str, draw: random.Random) -> list[Seen]:
    """A job on one or two nodes with several processes and sources, and what is said of its end, by nobody or by several."""
    nodes = NODES[: draw.randint(1, 2)]
    rows: dict[tuple[str, int, str], PeakRow] = {}
    for node in nodes:
        for pid, source in {(0, "sampled"), (draw.randint(1, 2), draw.choice(("sampled", "accounting", "torch"))), (9, "sampled")}:
            key = replace(a_key(pid=pid, boot_id=f"boot of {node}"), prediction=prediction, source=source)
            rows[node, pid, source] = replace(a_row(key, peak_bytes=draw.randint(1, CARD)), gpu_total_bytes=CARD)
    changes: list[Seen] = []
    for _ in range(draw.randint(3, 15)):
        place = draw.choice(sorted(rows))
        rows[place] = grown(rows[place], draw)
        changes.append(Seen(place[0], rows[place]))
    words = [(node, word) for node in nodes for word in ("started", *TERMINAL_EVENTS)]
    for node, word in draw.sample(words, k=draw.randint(0, 3)):  # an agent says each word of an attempt once
        event = JobEvent(cluster="alpha", job="402", restart=0, prediction=prediction, event=word, time=START + draw.randint(0, 500))
        changes.insert(draw.randint(0, len(changes)), Seen(node, event))
    return changes


def interleaved(histories: list[list[Seen]], draw: random.Random) -> list[Seen]:
    """One history of several jobs, each in its own order."""
    turns = [number for number, history in enumerate(histories) for _ in history]
    draw.shuffle(turns)
    waiting = [iter(history) for history in histories]
    return [next(waiting[number]) for number in turns]


class Agent:
    """A node's spool and what it puts on the wire."""

    def __init__(self, node: str, path: Path) -> None:
        self.node = NodeIdentity(node=node, agent_version="1", driver_version="580")
        self.spool = Spool(path=path)

    def know(self, change: Change) -> None:
        """Spools a change."""
        if isinstance(change, PeakRow):
            self.spool.put(rows=[change])
        else:
            self.spool.put(rows=[], events=[change])

    def send(self, limit: int, deliver: Callable[[Message], bool]) -> None:
        """Sends one batch and the events; what `deliver` does not acknowledge stays in the spool."""
        peaks = self.spool.batch(limit=limit, up_to_version=self.spool.latest_version())
        if peaks:
            key = peaks[0].row.key
            message = batch_message(node=self.node, rows=[peak.row for peak in peaks], cluster=key.cluster, boot_id=key.boot_id, sequence=1)
            if deliver(message):
                self.spool.acknowledge(peaks)
        for event in self.spool.events():
            if deliver(event_message(event)):
                self.spool.acknowledge_event(event)

    def drain(self, deliver: Callable[[Message], bool]) -> None:
        """Sends all of it."""
        while self.spool.waiting():
            self.send(100, deliver)


def receive(store: SqlStore, message: Message) -> bool:
    """What the service does with a message that arrives; it is acknowledged."""
    if isinstance(message, ReportPeaksRequest):
        rows, phases, refused = sort_out(message, received_us=1)
        assert not refused
        store.merge_peaks(rows, phases)
    else:
        store.add_event(read_event(message, received_us=1))
    return True


def in_order(history: list[Seen], store: SqlStore, agents: dict[str, Agent]) -> None:
    """Everything is known, then everything is sent, once."""
    for seen in history:
        agents[seen.node].know(seen.change)
    for agent in agents.values():
        agent.drain(lambda message: receive(store, message))


def in_disorder(history: list[Seen], store: SqlStore, agents: dict[str, Agent], draw: random.Random) -> None:
    """Sent at any moment in small batches; messages are held up and arrive later than newer ones, twice or without an acknowledgement."""
    held: list[Message] = []

    def deliver(message: Message) -> bool:
        fate = draw.random()
        if fate < 0.3:
            held.append(message)  # on its way, or never: the agent does not know
            return False
        receive(store, message)
        if fate < 0.5:
            held.append(message)  # and again later
        return fate < 0.8  # else its acknowledgement is lost

    for seen in history:
        agents[seen.node].know(seen.change)
        if draw.random() < 0.2:
            agents[draw.choice(NODES)].send(draw.randint(1, 12), deliver)
        if held and draw.random() < 0.2:
            receive(store, held.pop(draw.randrange(len(held))))
    for agent in draw.sample(sorted(agents.values(), key=lambda each: each.node.node), k=len(agents)):
        agent.drain(lambda message: receive(store, message))
    for message in draw.sample(held, k=len(held)):
        receive(store, message)


def everything(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row that agents can write."""
    with closing(sqlite3.connect(path)) as connection:
        tables = ("peaks", "phase_peaks", "job_events", "predictions")
        return {table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}


def observations(store: SqlStore) -> dict[str, Observed]:
    """What is made of every attempt whose end was seen."""
    due = store.due(names=None, settled_before_us=1 << 60)
    return {attempt.prediction: observe(attempt, model_version=MODEL) for attempt in due}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[SqlStore, SqlStore]]:
    """Two services, which know the same predictions."""
    opened = tuple(open_store(f"sqlite:///{tmp_path / name}.sqlite3") for name in ("ordered", "disordered"))
    for store in opened:
        store.add_predictions([a_prediction(f"predictions/{number}", subject=subject_text(SUBJECT)) for number in range(HISTORIES)])
    yield opened[0], opened[1]
    for store in opened:
        store.close()


def test_delivery_changes_nothing(stores: tuple[SqlStore, SqlStore], tmp_path: Path) -> None:
    """Every row of both databases is equal, and so is what is made of every attempt."""
    ordered, disordered = ({node: Agent(node, tmp_path / kind / node) for node in NODES} for kind in ("one", "other"))
    for first in range(0, HISTORIES, AT_ONCE):
        draw = random.Random(first)
        history = interleaved([a_history(f"predictions/{number}", draw) for number in range(first, first + AT_ONCE)], draw)
        in_order(history, stores[0], ordered)
        in_disorder(history, stores[1], disordered, draw)
    for agent in (*ordered.values(), *disordered.values()):
        agent.spool.close()
    assert everything(tmp_path / "disordered.sqlite3") == everything(tmp_path / "ordered.sqlite3")
    found = observations(stores[1])
    assert found == observations(stores[0])
    assert len(found) > HISTORIES / 2
    assert len({each.kind for each in found.values()}) >= 3
