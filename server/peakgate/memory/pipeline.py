"""Stages of a pipeline: their layers, and how many micro-batches each holds.

1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2): stage i of p holds p - i micro-batches at most.
Interleaved with v chunks a stage: it warms up
with (p - i - 1)·2 + (v - 1)·p chunks and one in work (megatron/core/pipeline_parallel/schedules.py). GPipe holds them all.
Zero-bubble: every stage holds v·p, because rank i warms up with p - i - 1 + (v - 1)·p and computes weight gradients i passes late
(torch/distributed/pipelining/schedules.py, _get_1f1b_rank_ops; ZB-H1 of Qi et al. 2024, arXiv 2401.10241, holds as many).
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.plan import Degrees

ZERO_BUBBLE = "zero-bubble"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`in_flight` micro-batches (or chunks of 1/`chunks` of the stage) whose activations are held at once."""

    number: int
    layers: int
    embeds: bool
    heads: bool
    in_flight: int
    chunks: int
    waiting: int = 0
    """Of those the ones whose weight gradients wait (zero-bubble), at the end of a pass for input gradients."""
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
            waiting=min(i + 1, micro_batches * degrees.virtual_pipeline) if degrees.schedule == ZERO_BUBBLE and count > 1 else 0,
            chunks=degrees.virtual_pipeline,
            start=sum(split[:i]),
        )
        for i in range(count)
    ]


def in_flight(degrees: Degrees, stage: int, micro_batches: int) -> int:
    """Micro-batches (chunks when interleaved) whose activations a stage holds at once."""
    p, v = degrees.pipeline, degrees.virtual_pipeline
    if p == 1:
        return v
    if degrees.schedule == "gpipe":
        return micro_batches * v
    if degrees.schedule == ZERO_BUBBLE:
        return min(v * p, micro_batches * v)
    if v > 1:
        return min((p - stage - 1) * 2 + (v - 1) * p + 1, micro_batches * v)
    return min(p - stage, micro_batches)


def distinct(all_stages: list[Stage]) -> list[Stage]:
    """The stages worth walking: those that differ in what they hold."""
    kept: list[Stage] = []
    for stage in all_stages:
        if not any(_covers(other, stage) for other in kept):
            kept.append(stage)
    return kept


def _covers(other: Stage, stage: Stage) -> bool:
    """Whether `other` holds as much of everything: of two stages of one kind the one with more layers and micro-batches."""
    alike = other.embeds == stage.embeds and other.heads == stage.heads
    return alike and other.layers >= stage.layers and other.in_flight >= stage.in_flight and other.waiting >= stage.waiting
