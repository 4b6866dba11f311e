"""What watching a node costs: eight GPUs with four processes each on the simulated NVML, whose answers take no time, by a virtual clock.

The time of a real driver comes on top; the agent measures it and keeps it at a hundredth of the time (pace.py).
"""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import cast

import structlog
from tests.bench.programs import ROOT

from peakgate.agent.attribution import Attribution
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.proc import ProcFolder
from peakgate.agent.resident import resident_bytes
from peakgate.agent.sampler import Sampler
from peakgate.agent.simulated.library import SimulatedNvml, compiled_library
from peakgate.agent.spool import Spool
from peakgate.agent.tracker import Tracker

GPUS, PROCESSES = 8, 4
JOB_SECONDS = 300
"""Each process lives so long and is followed by another, as on a busy node; the scenario holds a few of them and begins anew."""
GENERATIONS = 2
MIB = 1 << 20
STARTED_AT = 1_800_000_000.0
DAY_SECONDS = 86_400.0
WARM_SECONDS = 900.0
"""Three generations of jobs: what grows until then is caches that fill."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A stretch of virtual time."""

    seconds: float
    cpu_seconds: float
    lists: int

    @property
    def core_ratio(self) -> float:
        """Share of a core."""
        return self.cpu_seconds / self.seconds


def scenario() -> str:
    """The node: memory that climbs in three steps, then the next process."""
    lines = []
    for gpu in range(GPUS):
        lines.append(f"gpu {gpu} uuid=GPU-{gpu:08d} total=81559M reserved=480M name=NVIDIA_H100_80GB_HBM3")
        for slot in range(PROCESSES):
            for generation in range(GENERATIONS):
                start = generation * JOB_SECONDS
                steps = f"{start}:520M,{start + 5}:9G,{start + 20}:17G,{start + JOB_SECONDS}:end"
                lines.append(f"process {gpu} pid={10_000 + generation * 100 + gpu * PROCESSES + slot} memory={steps}")
    return "\n".join(lines) + "\n"


class VirtualNode:
    """The sampler on its own clock; the scenario repeats, so that processes come and go for as long as one likes."""

    def __init__(self, folder: Path) -> None:
        self._simulated = SimulatedNvml(compiled_library(cache=folder))
        self._simulated.load(scenario())
        self._simulated.set_time(0.0)
        self.now = 0.0
        nvml = Nvml(module=load_pynvml())
        nvml.start()
        self.sampler = Sampler(
            nvml=nvml, clock=lambda: self.now, wall=lambda: STARTED_AT + self.now, uniform=Random(7).uniform, call_clock=lambda: 0.0
        )

    def samples(self, seconds: float) -> Iterator[object]:
        """Everything that is sampled in so much virtual time."""
        until = self.now + seconds
        while self.now < until:
            self._simulated.set_time(self.now % (GENERATIONS * JOB_SECONDS))
            yield from self.sampler.poll()
            self.now += max(self.sampler.wait_seconds(), 1e-6)


def sampler_cost(folder: Path, seconds: float) -> Watched:
    """CPU of the sampler alone at the default rates, after it has found its GPUs; collection of garbage included. In a process of its own:
    in this one another test may have opened NVML."""
    program = f"from tests.bench.sampling import _cost; _cost({str(folder)!r}, {seconds!r})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    cpu_seconds, lists = json.loads(done.stdout.splitlines()[-1])
    return Watched(seconds, float(cpu_seconds), int(lists))


def _cost(folder: str, seconds: float) -> None:
    structlog.configure(
        processors=[], logger_factory=structlog.ReturnLoggerFactory(), wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)
    )
    node = VirtualNode(Path(folder))
    for _ in node.samples(30.0):
        pass
    gc.collect()
    lists, started = 0, time.process_time()
    for sample in node.samples(seconds):
        lists += type(sample).__name__ == "ProcessSample"
    print(json.dumps([time.process_time() - started, lists]))


def resident_mib(folder: Path, seconds: float) -> tuple[float, float]:
    """Resident memory of a process that watches for so long, in MiB: after the warm-up, and at the end."""
    program = f"from tests.bench.sampling import _watch; _watch({str(folder)!r}, {seconds!r})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    warm, end = cast("list[float]", json.loads(done.stdout.splitlines()[-1]))
    return warm, end


def _watch(folder: str, seconds: float) -> None:
    """The whole watching side of the agent with all that it imports: sampler, attribution, tracker, spool, whose rows are taken away."""
    import peakgate.agent.node_agent  # noqa: F401 (what the process of an agent has loaded)

    structlog.configure(
        processors=[], logger_factory=structlog.ReturnLoggerFactory(), wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)
    )
    node = VirtualNode(Path(folder))
    proc = ProcFolder()
    attribution = Attribution(cluster="bench", proc=proc, jobs=JobsFolder(folder=Path(folder) / "jobs"))
    tracker = Tracker(attribution=attribution, proc=proc, boot_id="bench")
    with _spool() as spool:
        warm = 0.0
        for stretch in (WARM_SECONDS, seconds):
            for sample in node.samples(stretch):
                changes = tracker.take(sample)  # type: ignore[arg-type]  # the iterator's elements are samples
                if changes.rows or changes.events:
                    spool.put(rows=changes.rows, events=changes.events)
                    if changes.are_urgent:
                        _deliver(spool)
            gc.collect()
            warm = warm or resident_bytes() / MIB
    print(json.dumps([warm, resident_bytes() / MIB]))


def _deliver(spool: Spool) -> None:
    """A service that takes everything at once."""
    while peaks := spool.batch(limit=256, up_to_version=spool.latest_version()):
        spool.acknowledge(peaks)
    for event in spool.events():
        spool.acknowledge_event(event)


@contextmanager
def _spool() -> Iterator[Spool]:
    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(path=Path(folder) / "agent.db")
        try:
            yield spool
        finally:
            spool.close()


def measured() -> dict[str, float]:
    """Ten minutes of the sampler, and a day of the whole watching side."""
    with tempfile.TemporaryDirectory() as folder:
        cost = min((sampler_cost(Path(folder), 600.0) for _ in range(3)), key=lambda each: each.cpu_seconds)
        warm, end = resident_mib(Path(folder), DAY_SECONDS)
    return {"sampler_core_ratio": cost.core_ratio, "agent_resident_mib": end, "agent_resident_growth_mib": end - warm}
