"""Nodes that report their peaks, or submitters that ask for predictions: a process of its own beside the service.

`python -m tests.bench.load reports|predictions OPTIONS` with the options as JSON; prints what it saw as JSON. Nodes share connections:
ten thousand of them are simulated, ten thousand connections are not.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, field

import grpc

from peakgate.v1.prediction_service_pb2 import PredictRequest
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2 import NodeInfo, PeakSample, ReportPeaksRequest
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

CHANNELS = 32
CALL_TIMEOUT_SECONDS = 10.0
RETRY_SECONDS = 1.0
TOTAL_BYTES = 85_520_809_984  # H100 80GB, as NVML reports it
SETUP_CALLS_IN_FLIGHT = 64
SETTLE_SECONDS_A_NODE = 0.0005  # between the nodes' predictions and their first reports: the predictions reach the database meanwhile
FRESH_ONE_IN = 10  # of the predictions, a length that was never seen


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the process does."""

    target: str = ""
    seconds: float
    nodes: int = 0
    gpus: int = 8
    period_seconds: float = 30.0
    job_seconds: float = 7200.0  # a job's mean run time: one in 240 batches is a job's last
    predictions_per_second: float = 0.0
    seed: int = 1


@dataclass
class Seen:
    """What a run saw. `expected` is the sum of the highest acknowledged peaks of each node's keys."""

    calls: int = 0
    stored_rows: int = 0
    refused_rows: int = 0
    repeated: int = 0
    late_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    keys: int = 0


def a_job(sequence_length: int = 2048) -> TrainingJob:
    """A Llama-sized job on one H100; another length is a job that was never seen."""
    job = TrainingJob(name="bench")
    job.model.preset = "llama-3.1-8b"
    job.batch.micro_batch_size, job.batch.sequence_length = 1, sequence_length
    job.precision.recipe, job.gpu.type = "bf16", "h100-80gb"
    return job


@dataclass
class Node:
    """One node with its running job; each batch states a higher peak than the last."""

    name: str
    prediction: str
    device_bytes: int
    number: int = 0
    batches: int = 0

    def batch(self, *, gpus: int, ended: bool) -> tuple[ReportPeaksRequest, int]:
        """The next batch and the highest sum that it states."""
        self.batches += 1
        now = time.time_ns()
        peaks = [int(self.device_bytes * 0.9) + 1_000_000 * min(self.batches, 1000) + index for index in range(gpus)]
        rows = [self._row(index, peak, now, ended) for index, peak in enumerate(peaks)]
        node = NodeInfo(
            cluster="bench", node=self.name, boot_id="0f5fc9ae-1b1b-4c39-9d3f-1b2d1e0aa001", agent_version="1", driver_version="550"
        )
        return ReportPeaksRequest(node=node, sequence=self.batches, peaks=rows), sum(peaks)

    def _row(self, index: int, peak: int, now: int, ended: bool) -> PeakSample:
        row = PeakSample(
            node=self.name,
            gpu_uuid=f"GPU-5d5ba0d6-d33d-2b2c-{self.name[-5:]}-{index:012x}",
            gpu_name="NVIDIA H100 80GB HBM3",
            gpu_total_bytes=TOTAL_BYTES,
            job=f"{self.name[-5:]}{self.number}",
            prediction=self.prediction,
            peak_bytes=float(peak),
            source="sampled",
            samples=60,
            ended=ended,
        )
        for stamp in (row.first_time, row.last_time, row.peak_time):
            stamp.seconds, stamp.nanos = divmod(now, 10**9)
        return row


class Reports:
    """Every node sends a batch a period, from a moment of its own in the period on, and again until it is acknowledged."""

    def __init__(self, options: Options, channels: list[grpc.aio.Channel]) -> None:
        self._options = options
        self._stubs = [TelemetryServiceStub(channel) for channel in channels]
        self._predict = PredictionServiceStub(channels[0])
        self._random = random.Random(options.seed)
        self._ends_one_in = max(1, round(options.job_seconds / options.period_seconds))
        self.seen = Seen()

    async def run(self) -> Seen:
        """Makes each node's prediction, then sends for as long as was asked."""
        nodes = await self._nodes()
        begin = asyncio.get_running_loop().time() + SETTLE_SECONDS_A_NODE * len(nodes)
        await asyncio.gather(*(self._live(index, node, begin) for index, node in enumerate(nodes)))
        return self.seen

    async def _nodes(self) -> list[Node]:
        gate = asyncio.Semaphore(SETUP_CALLS_IN_FLIGHT)
        request = PredictRequest(job=a_job())

        async def make(index: int) -> Node:
            async with gate:
                answer = await self._predict.Predict(request)
            return Node(f"node-{index:05d}", answer.prediction, answer.peak.device_bytes)

        return await asyncio.gather(*(make(index) for index in range(self._options.nodes)))

    async def _live(self, index: int, node: Node, begin: float) -> None:
        loop, options = asyncio.get_running_loop(), self._options
        due = begin + self._random.random() * options.period_seconds
        while due < begin + options.seconds:
            await asyncio.sleep(max(0.0, due - loop.time()))
            self.seen.late_seconds = max(self.seen.late_seconds, loop.time() - due)
            ended = self._random.randrange(self._ends_one_in) == 0
            batch, total = node.batch(gpus=options.gpus, ended=ended)
            await self._send(index, batch)
            if node.batches == 1:
                self.seen.keys += options.gpus
            self.seen.expected[f"{node.name}/{node.number}"] = total
            if ended:
                node.number, node.batches = node.number + 1, 0
            due += options.period_seconds

    async def _send(self, index: int, batch: ReportPeaksRequest) -> None:
        while True:
            start = time.perf_counter()
            try:
                answer = await self._stubs[index % len(self._stubs)].ReportPeaks(batch, timeout=CALL_TIMEOUT_SECONDS)
            except grpc.aio.AioRpcError:
                self.seen.repeated += 1
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self.seen.seconds.append(time.perf_counter() - start)
            self.seen.calls += 1
            self.seen.stored_rows += answer.stored
            self.seen.refused_rows += len(answer.refused)
            return


async def predict(options: Options, channels: list[grpc.aio.Channel]) -> Seen:
    """Asks at a steady rate, whether or not the last answer has come. A failed call ends the run."""
    stub, seen, loop = PredictionServiceStub(channels[0]), Seen(), asyncio.get_running_loop()
    lengths = iter(range(257, 131_072))
    begin, running = loop.time(), set()

    async def ask(request: PredictRequest) -> None:
        start = time.perf_counter()
        await stub.Predict(request, timeout=CALL_TIMEOUT_SECONDS)
        seen.seconds.append(time.perf_counter() - start)

    for number in range(round(options.seconds * options.predictions_per_second)):
        due = begin + number / options.predictions_per_second
        await asyncio.sleep(max(0.0, due - loop.time()))
        seen.late_seconds = max(seen.late_seconds, loop.time() - due)
        running.add(asyncio.create_task(ask(PredictRequest(job=a_job(next(lengths) if number % FRESH_ONE_IN == 0 else 2048)))))
        seen.calls += 1
    await asyncio.gather(*running)
    return seen


async def main(kind: str, options: Options) -> Seen:
    """Runs one kind of load."""
    channels = [grpc.aio.insecure_channel(options.target, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(CHANNELS)]
    seen = await (Reports(options, channels).run() if kind == "reports" else predict(options, channels))
    await asyncio.gather(*(channel.close() for channel in channels))
    return seen


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(main(sys.argv[1], Options(**json.loads(sys.argv[2])))))))
