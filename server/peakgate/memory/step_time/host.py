"""What crosses the link to the host's memory, and what its CPUs step.

ZeRO-Offload (Ren et al. 2021, arXiv 2101.06840, section 4): gradients go down beside the backward pass, the CPUs step, and the new 16-bit
weights come up; steps and copies up are waited for. Table 4: one billion parameters take CPU-Adam 0.22 s and PyTorch's Adam 1.39 s on the
CPUs of one node, which all its ranks share. FSDP steps with PyTorch's (torch/distributed/fsdp/_fully_shard/_fsdp_api.py: CPUOffloadPolicy).
Offloaded weights are fetched before each pass and offloaded activations leave and come back beside the passes (deepspeed runtime/zero/
partitioned_param_coordinator.py; torchtune training/_activation_offloading.py: a stream of its own).
"""

from __future__ import annotations

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.offload import ALL, on_host
from peakgate.memory.plan import Plan
from peakgate.memory.step_time.arithmetic import Number, hidden_behind, smaller
from peakgate.memory.step_time.card import Card
from peakgate.memory.step_time.data_parallel import gradient_bytes, overlaps, weight_bytes
from peakgate.memory.step_time.layers import MicroBatch
from peakgate.memory.step_time.sizes import Sizes
from peakgate.memory.step_time.update import owned_elements, owned_share
from peakgate.memory.step_time.work import Work

CPU_ADAM, TORCH_ADAM = 1e9 / 0.22, 1e9 / 1.39
"""Parameters per second of one node, all of whose cores step: torchrun gives each rank one thread unless OMP_NUM_THREADS says more."""


def host_seconds(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Number:
    """What a step waits for the host."""
    moved = on_host(plan)
    total: Number = 0.0
    if "optimizer_states" in moved:
        total = total + _optimizer(plan, work, sizes, card, micro)
    if "parameters" in moved:
        total = total + _weights(plan, work, sizes, card, micro)
    return total + _activations(plan, work, sizes, card, micro) if plan.offload_activations else total


def _optimizer(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Number:
    """Gradients of sharded kinds leave with every micro-batch, others once a step.

    From the second micro-batch on stage 2 fetches the sum so far and adds to it on the GPU (deepspeed runtime/zero/stage_1_and_2.py:
    async_accumulate_grad_in_cpu_via_gpu).
    """
    owned = owned_elements(plan, work, sizes)
    once = gradient_bytes(plan, work, sizes) * owned_share(plan, sizes) / card.to_host
    left = hidden_behind(once, micro.backward, work.layers) if overlaps(plan) else once
    steps: Number = sizes.accumulation if "gradients" in on_host(plan) else 1.0
    fetched = steps - 1.0 if plan.degrees.sharding == "zero2" else 0.0
    up = owned * ITEMSIZE[plan.formats.compute] / card.to_host
    rate = TORCH_ADAM if on_host(plan) == ALL else CPU_ADAM
    return left * (steps + fetched) + up + owned * smaller(sizes.world, sizes.node_gpus) * (1.0 / rate)


def _weights(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Number:
    """The rank's shard, before each pass that gathers it."""
    fetched = weight_bytes(plan, work, sizes) / sizes.shard / card.to_host
    pieces = work.layers
    once = hidden_behind(fetched, micro.forward, pieces) + hidden_behind(fetched, micro.backward, pieces)
    return once * sizes.accumulation


def _activations(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Number:
    """Inputs of checkpointed layers, or of every linear part of the others, to the host and back."""
    h = plan.architecture.dims["h"]
    kept: Number = h * micro.wrapped + work.saved_elements * (1.0 - micro.wrapped) if plan.checkpointing == "full" else work.saved_elements
    one_way = micro.rows * kept * micro.stage * (work.layers * ITEMSIZE[plan.formats.compute] / card.to_host)
    pieces = work.layers
    once = hidden_behind(one_way, micro.forward, pieces) + hidden_behind(one_way, micro.backward, pieces)
    return once * sizes.accumulation
