"""The plan search: CPU time of fifty thousand plans, of the answer to a rejected job, and memory beside an idle service."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.bench.walking import TRIES

from peakgate.memory.job import Batch, Framework, Gpu, Job, Model, Parallelism, Precision
from peakgate.memory.suggest.space import Space, space_of

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
    for _ in range(TRIES + 1):
        fresh = replace(space, known={}, plans=0)
        begin = time.process_time()
        for node in nodes:
            fresh.evaluate(node)
        best, plans = min(best, time.process_time() - begin), fresh.plans
    return plans, best
