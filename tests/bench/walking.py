"""CPU time of `memory.predict` alone: a new shape of a compiled structure, a new structure, and the replays of an 8B step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from peakgate.memory.check import world_of
from peakgate.memory.counts import counted
from peakgate.memory.job import Batch, Checkpointing, Framework, Gpu, Job, Lora, Model, Parallelism, Precision
from peakgate.memory.model import describe
from peakgate.memory.pipeline import stages
from peakgate.memory.predict import predict
from peakgate.memory.replay import play
from peakgate.memory.reserved import scripts_of
from peakgate.memory.resolve import resolve
from peakgate.memory.step import walk
from peakgate.memory.structures import forget_structures

SHAPES = 50
TRIES = 3

MODEL = Model(preset="llama-3.1-8b")
PLAIN = Job(
    model=MODEL,
    batch=Batch(micro_batch_size=2, sequence_length=4096),
    precision=Precision(recipe="bf16"),
    checkpointing=Checkpointing(mode="full"),
    framework=Framework(name="huggingface"),
    gpu=Gpu(type="h100-80gb"),
)
STRUCTURES = {
    "one GPU": PLAIN,
    "FSDP2": replace(PLAIN, parallelism=Parallelism(world_size=8, sharding="fsdp"), framework=Framework(name="torchtitan")),
    "QLoRA": replace(PLAIN, lora=Lora(rank=16, targets=("all-linear",), base_dtype="nf4"), precision=Precision(recipe="amp-bf16")),
}
"""Of an 8B model."""


def best_seconds(run: Callable[[], object], tries: int = TRIES, before: Callable[[], object] = lambda: None) -> float:
    """The least CPU time of a few runs."""
    best = float("inf")
    for _ in range(tries):
        before()
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return best


def new_shape_seconds(job: Job) -> float:
    """A prediction of a shape that was never seen, when the structure is compiled: the mean over fifty shapes."""
    forget_structures()
    shapes = [replace(job, batch=replace(job.batch, sequence_length=1024 + 64 * i)) for i in range(SHAPES + 2)]
    for each in shapes[:2]:
        predict(each)
    return best_seconds(lambda: [predict(each) for each in shapes[2:]]) / SHAPES


def new_structure_seconds(job: Job) -> float:
    """A prediction of a job that nothing like was seen of; the model's description is known."""
    predict(job)
    return best_seconds(lambda: predict(job), 5 * TRIES, forget_structures)


def replay_seconds(job: Job) -> tuple[float, float]:
    """(one plain replay of the recorded steps, a prediction with recording, replay and bisection)."""
    architecture = describe(job.model).architecture
    if architecture is None:
        raise ValueError(f"{job.model} has no sizes")
    plan = resolve(job, architecture, world_of(job)).plan
    (stage,) = stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation)
    recorded = walk(plan, stage, record=True)
    scripts = scripts_of(plan, stage, recorded, counted(plan, stage, recorded).resident)
    return best_seconds(lambda: [play(each) for each in scripts]), best_seconds(lambda: predict(job, exact=True))


def measured() -> dict[str, float]:
    """Seconds by the name of their bound; of several structures the slowest."""
    plain, whole = replay_seconds(PLAIN)
    return {
        "new_shape_seconds": max(new_shape_seconds(job) for job in STRUCTURES.values()),
        "new_structure_seconds": max(new_structure_seconds(job) for job in STRUCTURES.values()),
        "plain_replay_seconds": plain,
        "bisected_replay_seconds": whole,
    }
