"""Replays full-size jobs through the caching allocator's rules and prints the table of `peakgate/memory/ratios.py`.

`python tests/bench/fit_allocator.py`: every allocation of two steps of each job, with published models at several batches and lengths. No
measurement enters: the table stands in for the replay where there is no time for one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from statistics import median, quantiles

from peakgate.memory.job import Attention, Batch, Checkpointing, Framework, Job, Lora, Model, Optimizer, Precision
from peakgate.memory.predict import predict
from peakgate.memory.runtime import CONTEXT_BYTES

MODELS = ("llama-3.2-1b", "llama-3.1-8b", "qwen2.5-1.5b", "qwen2.5-7b", "mistral-7b-v0.1", "gpt2-xl")
BATCHES = ((1, 1000), (1, 2048), (2, 2048), (4, 1024), (1, 4096))


def jobs() -> Iterator[tuple[tuple[str, bool], Job]]:
    """((checkpointing, adapters), job) of every combination."""
    for name, (micro_batch, sequence), mode, adapters, implementation in itertools.product(
        MODELS, BATCHES, ("none", "full"), (False, True), ("foreach", "fused")
    ):
        if adapters and implementation == "foreach":
            continue
        yield (
            (mode, adapters),
            Job(
                model=Model(preset=name),
                batch=Batch(micro_batch_size=micro_batch, sequence_length=sequence),
                precision=Precision(recipe="bf16"),
                optimizer=Optimizer(name="adamw", implementation=implementation),
                attention=Attention(implementation="sdpa"),
                checkpointing=Checkpointing(mode=mode),
                lora=Lora(rank=16) if adapters else None,
                framework=Framework(name="huggingface"),
            ),
        )


def main() -> None:
    """Prints medians, and the spread that the table hides."""
    found: dict[tuple[str, bool], list[tuple[float, float]]] = defaultdict(list)
    for key, job in jobs():
        p = predict(job, exact=True)
        found[key].append((p.reserved_bytes / p.allocated_bytes, (p.required_bytes - CONTEXT_BYTES) / p.allocated_bytes))
    for key, rows in sorted(found.items()):
        reserved, required = zip(*rows, strict=True)
        spread = [f"{q:.3f}" for q in quantiles(reserved, n=10)[::8]], [f"{q:.3f}" for q in quantiles(required, n=10)[::8]]
        print(f"{key}: ({median(reserved):.3f}, {median(required):.3f}), {len(rows)} jobs; 10 and 90 %: {spread}")


if __name__ == "__main__":
    main()
