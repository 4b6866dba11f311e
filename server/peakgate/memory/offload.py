"""Which states lie in the host's memory; how much of it they take is `host_memory.py`.

Sources: torch/distributed/fsdp/_fully_shard/_fsdp_api.py (CPUOffloadPolicy) and fsdp/api.py (CPUOffload): parameters, gradients and with
them the optimizer's states; deepspeed runtime/zero/stage_1_and_2.py (cpu_offload: fp32 partitions, from stage 2 on the gradients too) and
stage3.py (offload_optimizer: grad_partitions_flat_buffer; offload_param: the 16-bit partitions).
"""

from __future__ import annotations

from peakgate.memory.plan import FSDP, Plan

ALL = frozenset({"parameters", "gradients", "master_weights", "optimizer_states"})
STEPPED = frozenset({"master_weights", "optimizer_states"})
"""What an optimizer in the host's memory steps there."""


def on_host(plan: Plan) -> frozenset[str]:
    """The states that a plan keeps in the host's memory."""
    sharding = plan.degrees.sharding
    if plan.offload_parameters and sharding in FSDP:
        return ALL
    moved = STEPPED if plan.offload_optimizer else frozenset[str]()
    if plan.offload_optimizer and plan.framework != "megatron" and sharding in ("zero2", "zero3"):
        moved |= {"gradients"}
    return moved | {"parameters"} if plan.offload_parameters and sharding == "zero3" else moved
