"""Stages of a pipeline: their layers, and how many micro-batches each holds.

1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2): stage i of p holds p - i micro-batches at most.
Interleaved with v chunks a stage: it warms up
with (p - i - 1)·2 + (v - 1)·p chunks and one in work (megatron/core/pipeline_parallel/schedules.py). GPipe holds them all.
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.plan import Degrees


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`in_flight` micro-batches (or chunks of 1/`chunks` of the stage) whose activations are held at once."""

    number: int
    layers: int
    embeds: bool
    heads: bool
    in_flight: int
    chunks: int
    start: int = 0
    """Layers of the stages before it."""


def stages(degrees: Degrees, layers: int, micro_batches: int) -> list[Stage]:
    """All stages of a pipeline; one stage without one."""
    count = degrees.pipeline
    split = degrees.stage_layers or tuple(layers // count + (i < layers % count) for i in range(count))
    return [
        Stage(
            number=i,
            layers=split[i],
            embeds=i == 0,
            heads=i == count - 1,
            in_flight=in_flight(degrees, i, micro_batches),
            chunks=degrees.virtual_pipeline,
            start=sum(split[:i]),
        )
        for i in range(count)
    ]


def in_flight(degrees: Degrees, stage: int, micro_batches: int) -> int:
    """Micro-batches (chunks when interleaved) whose activations a stage holds at once."""
    p, v = degrees.pipeline, degrees.virtual_pipeline
    if p == 1:
        return 1
    if degrees.schedule == "gpipe":
        return micro_batches * v
    if v > 1:
        return min((p - stage - 1) * 2 + (v - 1) * p + 1, micro_batches * v)
    return min(p - stage, micro_batches)


def distinct(all_stages: list[Stage]) -> list[Stage]:
    """The stages worth walking: those that differ in what they hold."""
    seen: dict[tuple[int, bool, bool, int], Stage] = {}
    for stage in all_stages:
        if (
            stage.embeds
            or stage.heads
            or not any(s.layers >= stage.layers and not s.heads and s.in_flight >= stage.in_flight for s in seen.values())
        ):
            seen[stage.layers, stage.embeds, stage.heads, stage.in_flight] = stage
    return list(seen.values())
