"""Replays full-size jobs through the caching allocator's rules and prints the table of `peakgate/memory/ratios.py`.

`python tests/bench/fit_allocator.py`: every allocation of three steps of each job, with published models at several batches and lengths. No
measurement enters: the table stands in for the replay where there is no time for one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from statistics import median, quantiles

from peakgate.memory.by_ratio import pool_bytes
from peakgate.memory.check import world_of
from peakgate.memory.counts import counted
from peakgate.memory.job import (
    Attention,
    Batch,
    Checkpointing,
    Framework,
    Job,
    Lora,
    Model,
    Optimizer,
    Parallelism,
    Precision,
)
from peakgate.memory.model import describe
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Plan
from peakgate.memory.ratios import Key, key_of
from peakgate.memory.reserved import replayed
from peakgate.memory.resolve import resolve
from peakgate.memory.step import walk

MODELS = ("llama-3.2-1b", "llama-3.1-8b", "qwen2.5-7b", "gpt2-xl")
BATCHES = ((1, 1000), (2, 2048), (1, 8192))
RANKS = 8


UNIT_MODELS = ("llama-3.2-1b", "llama-3.1-8b", "llama-2-13b")
UNIT_BATCHES = ((1, 4096), (1, 8192), (2, 8192))
"""torchtitan's own configurations train on 4,096 and 8,192 tokens (models/llama3/train_configs)."""
VERSIONS = ("0.0", "0.2.1")


def jobs() -> Iterator[Job]:
    """Those on Hugging Face's kernels, and those of FSDP2's units on torchtitan's."""
    yield from flat_jobs()
    yield from unit_jobs()


def unit_jobs() -> Iterator[Job]:
    """Every combination of torchtitan's ages, with eager and with compiled layers."""
    for name, (micro_batch, sequence), mode, expandable, version, compiled in itertools.product(
        UNIT_MODELS, UNIT_BATCHES, ("none", "full", "selective"), (False, True), VERSIONS, (False, True)
    ):
        if compiled and mode == "none":  # not counted
            continue
        yield Job(
            model=Model(preset=name),
            batch=Batch(micro_batch_size=micro_batch, sequence_length=sequence),
            precision=Precision(recipe="fsdp-bf16"),
            optimizer=Optimizer(name="adamw", implementation="fused"),
            checkpointing=Checkpointing(mode=mode),
            parallelism=Parallelism(sharding="fsdp", world_size=RANKS),
            framework=Framework(name="torchtitan", version=version, compile=compiled, expandable_segments=expandable),
        )


def flat_jobs() -> Iterator[Job]:
    """Every combination."""
    for name, (micro_batch, sequence), mode, adapters, sharding, expandable in itertools.product(
        MODELS, BATCHES, ("none", "full"), (False, True), ("none", "fsdp"), (False, True)
    ):
        mixed = sharding == "fsdp" and not adapters
        yield Job(
            model=Model(preset=name),
            batch=Batch(micro_batch_size=micro_batch, sequence_length=sequence),
            precision=Precision(recipe="fsdp-bf16" if mixed else "bf16"),
            optimizer=Optimizer(name="adamw", implementation="fused"),
            attention=Attention(implementation="sdpa"),
            checkpointing=Checkpointing(mode=mode),
            lora=Lora(rank=16) if adapters else None,
            parallelism=Parallelism(sharding=sharding, world_size=RANKS if sharding == "fsdp" else 1),
            framework=Framework(name="huggingface", expandable_segments=expandable),
        )


def planned(job: Job) -> tuple[Plan, Stage]:
    """The plan of a job's one stage."""
    architecture = describe(job.model).architecture
    if architecture is None:
        raise ValueError(f"{job.model} has no sizes")
    plan = resolve(job, architecture, world_of(job)).plan
    return plan, stages(plan.degrees, architecture.dims["L"], plan.accumulation)[0]


def ratios(plan: Plan, stage: Stage) -> tuple[float, float]:
    """(reserved over `pool_bytes` of the compute stream, required over allocated bytes) of the replay."""
    counts = counted(plan, stage, walk(plan, stage))
    base = sum(line.bytes for line in counts.resident)
    allocated = base + max(counts.blocks.values())
    reserved, required = replayed(plan, stage, counts.resident, allocated)
    compute, others = pool_bytes(counts, base)
    return (reserved - others) / compute, required / allocated


def main() -> None:
    """Prints medians, and the spread that the table hides."""
    found: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for job in jobs():
        plan, stage = planned(job)
        found[key_of(plan)].append(ratios(plan, stage))
    for key, rows in sorted(found.items()):
        reserved, required = zip(*rows, strict=True)
        spread = [f"{q:.3f}" for q in quantiles(reserved, n=10)[::8]], [f"{q:.3f}" for q in quantiles(required, n=10)[::8]]
        print(f"    {key}: ({median(reserved):.3f}, {median(required):.3f}),  # {len(rows)} jobs; 10 and 90 %: {spread}", flush=True)


if __name__ == "__main__":
    main()
