"""The rates of a card and of the links around it.

A step reaches a part of what data sheets print. Matrix products: 271 of 312 TFLOP/s on an A100 and 795 of 989 on an H100 (Stas Bekman,
Machine Learning Engineering, compute/accelerator, maximum achievable matmul FLOPS: 80 to 87 %). Links: NCCL's tests print 230 to 250 GB/s
of bus bandwidth on eight A100, whose NVLink has 300 (Alaya NeW, NCCL-tests in practice, reference numbers).
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.catalog.gpus import GPUS, GpuSpec
from peakgate.memory.catalog.links import links_of
from peakgate.memory.step_time.arithmetic import Number, larger, smaller
from peakgate.memory.step_time.sizes import Sizes

MATRIX_SHARE, LINK_SHARE = 0.8, 0.8
"""The lower ends of the measured shares above."""

DEFAULT = "a100-80gb"
"""Costed where a job names no card: compute, memory and links of the papers that the formulas come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What one GPU reaches: FLOP per second of 16-bit matrix products; bytes per second of its memory and, one way, of its links.

    `between_nodes` is the GPU's own share of its node's network.
    """

    flops: float
    memory_bandwidth: float
    inside_node: float
    between_nodes: float
    to_host: float


def card_of(spec: GpuSpec | None = None) -> Card:
    """The card of a catalogue entry; without one, DEFAULT."""
    known = spec or GPUS[DEFAULT]
    links = links_of(known.name)
    return Card(
        flops=known.dense_bf16_flops * MATRIX_SHARE,
        memory_bandwidth=known.memory_bandwidth,
        inside_node=links.inside_node * LINK_SHARE,
        between_nodes=links.between_nodes * LINK_SHARE,
        to_host=links.to_host * LINK_SHARE,
    )


def seconds_per_byte(card: Card, sizes: Sizes, members: Number, stride: Number) -> Number:
    """Of a collective over `members` ranks that are `stride` ranks apart.

    Ranks are numbered tensor first, then context, data, pipeline (megatron/core/parallel_state.py: order="tp-cp-ep-dp-pp"), and fill nodes
    in turn. A ring that leaves its node crosses the network once a node, so all adapters of its GPUs there carry it (NCCL's rings, one a
    channel).
    """
    crosses = members * stride > sizes.node_gpus
    own = larger(smaller(sizes.node_gpus / stride, members), 1.0)
    return larger(1.0 / card.inside_node, crosses / (card.between_nodes * own))
