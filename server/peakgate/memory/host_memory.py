"""How much of the host's memory the states take that lie there (`offload.py`).

Sources: deepspeed ops/adam/cpu_adam.py and runtime/zero/stage_1_and_2.py; torch/distributed/fsdp/_fully_shard/_fsdp_api.py.
"""

from __future__ import annotations

from peakgate.memory.offload import ALL, on_host
from peakgate.memory.optimizers import ROWS
from peakgate.memory.plan import FSDP, Plan
from peakgate.memory.states import States
from peakgate.memory.trained import gradient_itemsize, state_itemsize


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
