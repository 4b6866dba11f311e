"""Which states lie in the host's memory, and how much of it they take.

Sources: torch/distributed/fsdp/_fully_shard/_fsdp_api.py (CPUOffloadPolicy) and fsdp/api.py (CPUOffload): parameters, gradients and with
them the optimizer's states; deepspeed runtime/zero/stage_1_and_2.py (cpu_offload: fp32 partitions, from stage 2 on the gradients too) and
stage3.py (offload_optimizer: grad_partitions_flat_buffer; offload_param: the 16-bit partitions); deepspeed ops/adam/cpu_adam.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.optimizers import ROWS
from peakgate.memory.plan import FSDP
from peakgate.memory.trained import gradient_itemsize, state_itemsize

if TYPE_CHECKING:
    from peakgate.memory.plan import Plan
    from peakgate.memory.states import States

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


def host_bytes(plan: Plan, states: States) -> int:
    """Host memory a node: for DeepSpeed's Adam three float32 copies of what each rank trains; for FSDP all states in their own formats."""
    host = on_host(plan)
    if not host:
        return 0
    ranks = min(plan.degrees.world, plan.node_gpus)
    optimizer = 12 if "optimizer_states" in host else 0
    if host == ALL and plan.degrees.sharding in FSDP:
        row = ROWS[plan.optimizer]
        optimizer = gradient_itemsize(plan) + row.copies * (row.itemsize or state_itemsize(plan))
    parameters = states.stored if "parameters" in host else 0
    return (parameters + optimizer * states.owned) * ranks
