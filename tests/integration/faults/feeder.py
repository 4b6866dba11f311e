"""What the agent does with peaks, without a GPU: puts them into the spool and sends them, until it is killed.

`python -m tests.integration.faults.feeder SERVER SPOOL LOG SEED` writes every peak to LOG after the spool has committed it.
A process belongs to one job for good, and its peaks end in its number, so that a peak that moved would show.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

import grpc.aio
from tests.unit.agent.builders import a_key, a_row

from peakgate.agent.peaks import PeakRow
from peakgate.agent.sender import Sender
from peakgate.agent.spool import Spool
from peakgate.agent.transport import UnaryTransport
from peakgate.agent.wire import NodeIdentity
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

PROCESSES = 60
JOBS = 7
STEP = 100
"""Peaks are multiples of it plus the process's number."""


def peak_of(pid: int, number: int) -> PeakRow:
    """The peak that the process has at this count."""
    row = a_row(a_key(pid=pid, job=job_of(pid)), peak_bytes=number * STEP + pid)
    return replace(row, gpu_total_bytes=0)  # an unknown card takes any peak


def job_of(pid: int) -> str:
    """The job of a process."""
    return str(400 + pid % JOBS)


def the_sender(server: grpc.aio.Channel, spool: Spool) -> Sender:
    """A sender in a hurry."""
    stub = TelemetryServiceStub(server)
    transport = UnaryTransport(stub=stub, timeout_seconds=2.0)
    node = NodeIdentity(node="node-1", agent_version="1")
    return Sender(spool=spool, transport=transport, stub=stub, node=lambda: node, interval_seconds=0.02)


async def feed(server: str, spool: Spool, log: int, draw: random.Random) -> None:
    """Never ends by itself."""
    async with grpc.aio.insecure_channel(server) as channel:
        wake, stop = asyncio.Event(), asyncio.Event()
        sending = asyncio.create_task(the_sender(channel, spool).run(wake=wake, stop=stop))
        while not sending.done():
            number = time.time_ns() // 1_000_000
            rows = [peak_of(draw.randint(1, PROCESSES), number) for _ in range(8)]
            await asyncio.to_thread(spool.put, rows=rows)
            os.write(log, b"".join(b"%d %d\n" % (row.key.pid, row.peak_bytes) for row in rows))
            await asyncio.sleep(0.003)


def main() -> None:
    """Reads the command line."""
    server, spool, log, seed = sys.argv[1:]
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    asyncio.run(feed(server, Spool(path=Path(spool)), descriptor, random.Random(int(seed))))


if __name__ == "__main__":
    main()
