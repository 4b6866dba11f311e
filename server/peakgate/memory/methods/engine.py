"""A generation engine on the training card: vLLM takes its share of the card for weights, cache and workspaces.

Source: vLLM config/cache.py, gpu_memory_utilization: the fraction of the card's total that one instance uses; TRL 1.0
generation/vllm_generation.py (mode `colocate`) and vLLM's sleep mode, which gives the share back while the policy is trained. The
share includes the engine's own context.
"""

from __future__ import annotations

from peakgate.memory.capacity import capacity_of
from peakgate.memory.job import Generation, Job

DEFAULT_FRACTION = 0.3
"""TRL 1.0 trainer/grpo_config.py: vllm_gpu_memory_utilization=0.3."""


def is_colocated(generation: Generation | None) -> bool:
    """Whether the engine shares the card with the training process."""
    return generation is not None and (generation.colocated or generation.mode == "colocated")


def fraction_of(generation: Generation) -> float:
    """The engine's share of the card."""
    return DEFAULT_FRACTION if generation.memory_fraction is None else generation.memory_fraction


def engine_bytes(job: Job) -> int:
    """Bytes of a colocated engine; 0 without one, or when the card is not known."""
    generation, capacity = job.method.generation, capacity_of(job)
    if generation is None or not is_colocated(generation) or capacity is None:
        return 0
    return int(fraction_of(generation) * capacity.total_bytes)
