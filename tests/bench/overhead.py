"""Server CPU of one Predict over server CPU of one empty unary echo, measured side by side in one run.

CPU time of the server process is what is compared: on a busy machine wall time varies several-fold while CPU time a call varies
by a quarter. Client and servers are separate processes; every kind of call is measured in each round, so that drift hits all alike.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import grpc
from tests.bench import echo
from tests.bench.load import a_job
from tests.bench.programs import Program, echo_server, machine_cpu_seconds, peakgate_server

from peakgate.v1.prediction_service_pb2 import PredictRequest

PREDICT = "/peakgate.v1.PredictionService/Predict"
CALLS_IN_FLIGHT = 64
CHANNELS = 4
CALL_TIMEOUT_SECONDS = 60.0
# Predictions are written behind the answer; what that costs the server belongs to the call.
SETTLE_SECONDS = 0.3
KINDS = ("echo", "warm", "fresh")


@dataclass(frozen=True)
class Sample:
    """One burst of calls of one kind."""

    calls: int
    server_cpu_seconds: float
    wall_seconds: float
    p99_seconds: float
    foreign_cpu_ratio: float  # CPU of all other programs over CPU that the machine has, while the burst ran

    @property
    def cpu_microseconds(self) -> float:
        """Server CPU a call."""
        return self.server_cpu_seconds / self.calls * 1e6


@dataclass(frozen=True)
class Overhead:
    """What a run found: samples by kind, one a round."""

    samples: dict[str, list[Sample]]

    def ratios(self, kind: str) -> list[float]:
        """CPU a call over that of the echo of the same round."""
        return [mine.cpu_microseconds / base.cpu_microseconds for mine, base in zip(self.samples[kind], self.samples["echo"], strict=True)]

    def ratio(self, kind: str) -> float:
        """The median over the rounds."""
        return median(self.ratios(kind))


def requests_of(kind: str, lengths: Iterator[int], calls: int) -> list[bytes]:
    """The encoded requests of one burst; fresh jobs take new lengths from the iterator."""
    if kind == "echo":
        return [b""] * calls
    if kind == "warm":
        return [PredictRequest(job=a_job()).SerializeToString()] * calls
    return [PredictRequest(job=a_job(next(lengths))).SerializeToString() for _ in range(calls)]


async def send_all(target: str, method: str, requests: Sequence[bytes]) -> list[float]:
    """Sends raw requests, 64 in flight over 4 connections; gives each call's seconds. Any failed call ends the run."""
    options = [("grpc.use_local_subchannel_pool", 1)]  # else all channels share one connection
    channels = [grpc.aio.insecure_channel(target, options=options) for _ in range(CHANNELS)]
    todo, seconds = iter(requests), []

    async def worker(call: Callable[..., grpc.aio.UnaryUnaryCall[bytes, bytes]]) -> None:
        for request in todo:
            begin = time.perf_counter()
            await call(request, timeout=CALL_TIMEOUT_SECONDS)
            seconds.append(time.perf_counter() - begin)

    await asyncio.gather(*(worker(channels[i % CHANNELS].unary_unary(method)) for i in range(CALLS_IN_FLIGHT)))
    await asyncio.gather(*(channel.close() for channel in channels))
    return seconds


def measure(program: Program, method: str, requests: Sequence[bytes]) -> Sample:
    """One burst against one server."""
    server, machine, client, begin = program.cpu_seconds(), machine_cpu_seconds(), time.process_time(), time.perf_counter()
    seconds = sorted(asyncio.run(send_all(program.target, method, requests)))
    wall = time.perf_counter() - begin
    time.sleep(SETTLE_SECONDS)
    used = program.cpu_seconds() - server
    foreign = machine_cpu_seconds() - machine - used - (time.process_time() - client)
    return Sample(
        len(seconds),
        used,
        wall,
        seconds[int(0.99 * (len(seconds) - 1))],
        max(0.0, foreign) / ((wall + SETTLE_SECONDS) * (os.cpu_count() or 1)),
    )


def measure_overhead(folder: Path, *, rounds: int, calls: int, fresh_calls: int) -> Overhead:
    """Starts both servers, warms them up and measures every kind in each round."""
    lengths = iter(range(257, 131_072))
    with echo_server(folder) as empty, peakgate_server(folder) as service:
        plan = {"echo": (empty, echo.METHOD, calls), "warm": (service, PREDICT, calls), "fresh": (service, PREDICT, fresh_calls)}
        for kind, (program, method, _) in plan.items():
            measure(program, method, requests_of(kind, lengths, 2 * CALLS_IN_FLIGHT))
        samples: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
        for _ in range(rounds):
            for kind, (program, method, count) in plan.items():
                samples[kind].append(measure(program, method, requests_of(kind, lengths, count)))
    return Overhead(samples)


def line(kind: str, samples: Sequence[Sample], ratios: Sequence[float]) -> str:
    """One line of the table: medians over the rounds."""
    cpu, rate = median(s.cpu_microseconds for s in samples), median(s.calls / s.wall_seconds for s in samples)
    p99, foreign = median(s.p99_seconds for s in samples) * 1e3, median(s.foreign_cpu_ratio for s in samples)
    return f"{kind:8}{cpu:15.0f}{rate:10.0f}{p99:9.1f}{foreign:11.0%}{min(ratios):17.2f}{median(ratios):8.2f}{max(ratios):8.2f}"


def report(found: Overhead, bars: Mapping[str, float]) -> str:
    """The table that `make bench` prints, and a line for each kind of call that has a bar."""
    lines = [f"{'call':8}{'server CPU µs':>15}{'calls/s':>10}{'p99 ms':>9}{'other CPU':>11}{'over echo: min':>17}{'median':>8}{'max':>8}"]
    lines += [line(kind, found.samples[kind], found.ratios(kind)) for kind in KINDS]
    for kind, bar in bars.items():
        verdict = "holds" if found.ratio(kind) <= bar else "BROKEN"
        lines.append(f"a {kind} Predict costs {found.ratio(kind):.2f} of an empty echo (bar {bar}: {verdict})")
    return "\n".join(lines)
