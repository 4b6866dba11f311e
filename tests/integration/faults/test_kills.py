"""kill -9 of the agent and of the service at random moments."""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio
import pytest
from tests.integration.faults.feeder import STEP, job_of, the_sender

from peakgate.agent.spool import Spool

SERVE = "from peakgate.server.main import run_server; raise SystemExit(run_server(grpc_port={port}, http_port=0, database_url='{url}'))"
ANNOUNCEMENT = re.compile(r"gRPC on \S+:(\d+) and HTTP")


@dataclass
class Cluster:
    """A service and a feeder, each a process of its own; either may be killed and started again."""

    folder: Path
    port: int = 0
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    starts: int = 0

    def start(self, who: str) -> None:
        """Starts the service (and waits for it) or the feeder."""
        self.starts += 1
        if who == "service":
            code = SERVE.format(port=self.port, url=f"sqlite:///{self.folder / 'store.sqlite3'}")
            process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert process.stdout
            found = ANNOUNCEMENT.search(process.stdout.readline())
            assert found
            self.port = int(found[1])
        else:
            command = [sys.executable, "-m", "tests.integration.faults.feeder", f"127.0.0.1:{self.port}"]
            places = [str(self.folder / "agent.db"), str(self.folder / "log"), str(self.starts)]
            process = subprocess.Popen([*command, *places], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.running[who] = process

    def kill(self, who: str) -> None:
        """kill -9."""
        process = self.running.pop(who)
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()

    def log(self) -> dict[int, int]:
        """The highest peak of each process that the spool had committed."""
        highest: dict[int, int] = {}
        for pid, peak in (map(int, line.split()) for line in (self.folder / "log").read_text().splitlines()):
            highest[pid] = max(highest.get(pid, 0), peak)
        return highest

    def stored(self) -> list[tuple[int, str, int]]:
        """Process, job and peak of every row of the service."""
        with closing(sqlite3.connect(self.folder / "store.sqlite3")) as connection:
            return connection.execute("SELECT pid, job, peak_bytes FROM peaks").fetchall()


async def _drain(cluster: Cluster) -> None:
    """Delivers what the spool still holds."""
    spool = Spool(path=cluster.folder / "agent.db")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{cluster.port}") as channel:
        await the_sender(channel, spool).drain()
    assert spool.waiting() == 0
    spool.close()


@pytest.mark.parametrize("rounds", [4, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(1500)])])
def test_kills_lose_double_and_move_nothing(tmp_path: Path, rounds: int) -> None:
    """Whatever the spool had committed stands in the service at the end: each process in one row, under its own job, at its height."""
    draw = random.Random(time.time_ns())
    cluster = Cluster(tmp_path)
    cluster.start("service")
    cluster.start("feeder")
    for _ in range(rounds):
        time.sleep(draw.uniform(0.05, 1.2))
        who = draw.choice(["service", "feeder"])
        cluster.kill(who)
        time.sleep(draw.uniform(0.0, 0.3))
        cluster.start(who)
    time.sleep(2.0)
    for who in ("feeder", "service"):
        cluster.kill(who)
    cluster.start("service")
    asyncio.run(_drain(cluster))
    cluster.kill("service")
    stored = cluster.stored()
    assert len({pid for pid, _, _ in stored}) == len(stored)
    assert all(job == job_of(pid) and peak % STEP == pid for pid, job, peak in stored)
    heights = {pid: peak for pid, _, peak in stored}
    assert {pid for pid, peak in cluster.log().items() if heights.get(pid, 0) < peak} == set()
    assert cluster.log()
