"""The plan search: CPU time of fifty thousand plans, of the answer to a rejected job, and memory beside an idle service."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import yaml
from tests.bench.programs import ROOT
from tests.bench.walking import TRIES, best_seconds

from peakgate.calibration import Snapshot
from peakgate.memory.job import Batch, Framework, Gpu, Job, Model, Parallelism, Precision
from peakgate.memory.structures import forget_structures
from peakgate.memory.suggest.plans import plans_of
from peakgate.memory.suggest.rank_figures import forget_ranks
from peakgate.memory.suggest.space import Space, space_of
from peakgate.memory.suggest.wanted import Wanted
from peakgate.server.judge import Judge
from peakgate.server.memory import memory_model
from peakgate.server.policy import Policy
from peakgate.v1.document import parse_job

GPUS = 1024

WIDE = Job(
    model=Model(preset="llama-3.1-70b"),
    batch=Batch(micro_batch_size=1, sequence_length=8192, gradient_accumulation_steps=2_162_160),
    precision=Precision(recipe="megatron-bf16"),
    framework=Framework(name="megatron"),
    gpu=Gpu(type="h100-80gb", count=GPUS),
    parallelism=Parallelism(world_size=GPUS),
)
"""A job with many legal plans: its accumulation has 320 divisors, so many micro-batches come with each choice of degrees."""

DEGREES = ("tensor", "pipeline", "context")
TITLES = ((), ("full activation checkpointing",), ("distributed optimizer (ZeRO-1)",))
"""Choices of levers that all degrees are tried with, each a program of its own for every stage."""

CARD_BYTES = 80_000_000_000


REJECTED = ("gpt2-xl-oom", "llama-2-7b-lora-oom", "llama-65b-qlora-oom")
"""Examples that did not fit."""


def wide_space() -> tuple[Space, list[tuple[int, ...]]]:
    """The space of WIDE with micro-batches as large as its accumulation allows, and its choices."""
    space = space_of(WIDE, lambda _group: CARD_BYTES)
    if space is None:
        raise ValueError("the job says enough to walk its step")
    places = {option.degree or option.title: place for place, option in enumerate(space.options)}
    nodes = [tuple(sorted(places[name] for name in (*titles, *DEGREES))) for titles in TITLES]
    return replace(space, larger=True), nodes


def plans_seconds() -> tuple[int, float]:
    """(plans, CPU seconds): worst rank and step time of every plan, when the programs are compiled; best of several."""
    space, nodes = wide_space()
    best, plans = float("inf"), 0
    for _ in range(1 + TRIES):  # the first compiles
        fresh = replace(space, known={}, plans=0)
        begin = time.process_time()
        for node in nodes:
            fresh.evaluate(node)
        best, plans = min(best, time.process_time() - begin), fresh.plans
    return plans, best


def answer_seconds(document: Path) -> tuple[float, float]:
    """CPU seconds of a Predict of a rejected job, suggestions and all: (by a service that knows the job's structures, by one that has seen
    no job); best of several."""
    judge = Judge(memory_model(), Snapshot(), Policy())
    job_bytes = parse_job(yaml.safe_load(document.read_text())).SerializeToString(deterministic=True)

    def answer() -> None:
        judge.judge(job_bytes)

    def forget() -> None:
        forget_ranks()
        forget_structures()

    cold = best_seconds(answer, before=forget)
    answer()
    return best_seconds(answer), cold


MEMORY = """
from tests.bench.walking import PLAIN
from peakgate.memory.predict import predict
from peakgate.server.judge import Judge
predict(PLAIN)
from tests.bench.memory import peak_mib
idle = peak_mib()
from tests.bench.suggesting import search_widely
search_widely(thorough={thorough})
print(peak_mib() - idle)
"""


def search_widely(*, thorough: bool) -> int:
    """Plans that are looked at for a job with many: its micro-batch has 60 divisors."""
    job = replace(WIDE, batch=Batch(micro_batch_size=5040, sequence_length=8192))
    return plans_of(job, lambda _group: CARD_BYTES, Wanted(thorough=thorough, most=8)).considered


def memory_mib(*, thorough: bool = True) -> float:
    """MiB that a search of a large lattice takes of a process that has answered a job, numpy and compiled walks among them."""
    found = subprocess.run([sys.executable, "-c", MEMORY.format(thorough=thorough)], capture_output=True, text=True, check=True, cwd=ROOT)
    return float(found.stdout)


def measured() -> dict[str, float]:
    """Seconds, and MiB, by the name of their bound; of several jobs the slowest."""
    plans, seconds = plans_seconds()
    answers = [answer_seconds(ROOT / "examples" / f"{name}.yaml") for name in REJECTED]
    return {
        "fifty_thousand_plans_seconds": seconds * 50_000 / plans,
        "rejected_predict_seconds": max(warm for warm, _ in answers),
        "unseen_rejected_predict_seconds": max(cold for _, cold in answers),
        "suggest_memory_mib": memory_mib(),
    }
