"""Model states of one rank: parameters, gradients, master weights, optimizer states, each by its own format.

Seed B: model states = N (b_param + b_grad + b_master + b_m1 + b_m2). ZeRO divides optimizer states (stage 1),
gradients (2) and parameters (3)
over the shard degree (ZeRO, arXiv 1910.02054, section 5); Megatron-LM's distributed optimizer divides master weights and optimizer
states (6 + 12/dp bytes, megatron/training/theoretical_memory_usage.py). An offloaded optimizer takes the master weights along
(deepspeed runtime/zero/stage_1_and_2.py: single_partition_of_fp32_groups; megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peakgate.memory.dtypes import ITEMSIZE, QUANTISED, stored_bytes
from peakgate.memory.offload import on_host
from peakgate.memory.optimizers import PAGED_FROM, ROWS, StepTemporary, step_temporary
from peakgate.memory.plan import FSDP, SHARDED, Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.profiles.megatron_fp8 import in_8_bits
from peakgate.memory.trained import gradient_itemsize, state_itemsize
from peakgate.memory.weights import Weight

SHARDED_FROM = {
    "optimizer": SHARDED,
    "gradients": ("zero2", "zero3", *FSDP),
    "parameters": ("zero3", *FSDP),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Bytes on one rank between steps; `gradients` are those with a buffer of their own (else 0)."""

    parameters: int
    gradients: int
    master_weights: int
    optimizer_states: int
    elements: int
    trainable: int
    trained_bytes: int
    """Trained parameters in the format of their gradients, on this rank's shard."""
    owned: int
    """Trained elements that this rank's optimizer step works on."""
    largest: int
    """Elements of the largest trained parameter."""
    stored: int
    """Bytes of this rank's shard of the parameters as they are stored, on the card or in the host's memory."""
    lazy_optimizer: bool = True
    """Whether optimizer states appear at the first step (torch.optim) and not at the start."""

    @property
    def resident(self) -> int:
        """What lives all step long."""
        return self.parameters + self.gradients + self.master_weights + self.optimizer_states


def states_of(plan: Plan, weights: Iterable[Weight]) -> States:
    """Counts the states of a rank that holds `weights`."""
    listed, formats = list(weights), plan.formats
    trained = [weight for weight in listed if weight.trainable]
    elements = sum(w.elements * w.count for w in listed)
    trainable = sum(w.elements * w.count for w in trained)
    optimizer_itemsize = ROWS[plan.optimizer].itemsize or state_itemsize(plan)
    row = ROWS[plan.optimizer]
    scale_bytes = ITEMSIZE["float32"] * row.copies
    counters = COUNTER_BYTES * counters_of(plan, trained)
    owned = _owned(plan, [w for w in trained if not row.paged or w.elements < PAGED_FROM], "optimizer")
    scales = owned * scale_bytes // row.scaled_block if row.scaled_block else 0
    optimizer = owned * row.copies * optimizer_itemsize + scales + counters
    gradient_bytes = _owned(plan, trained, "gradients") * gradient_itemsize(plan)
    host, stored = on_host(plan), _parameter_bytes(plan, listed)
    return States(
        parameters=0 if "parameters" in host else stored,
        stored=stored,
        gradients=gradient_bytes if formats.resident_gradients else 0,
        master_weights=0 if "master_weights" in host else _owned(plan, trained, "optimizer") * ITEMSIZE[formats.master_weights],
        optimizer_states=0 if "optimizer_states" in host else optimizer,
        elements=elements,
        trainable=trainable,
        trained_bytes=gradient_bytes,
        owned=_owned(plan, trained, "optimizer"),
        largest=max((w.elements for w in trained), default=0),
        lazy_optimizer=not formats.resident_gradients and formats.master_weights == "none",
    )


COUNTER_BYTES = 4
"""One fp32 step count a tensor."""


def counters_of(plan: Plan, trained: Iterable[Weight]) -> int:
    """Step counts that the optimizer keeps, one a tensor; the textbook counts none."""
    row = ROWS[plan.optimizer]
    return sum(w.count for w in trained if w.trainable) if row.counters and row.copies and plan.profile != "textbook" else 0


def _owned(plan: Plan, weights: list[Weight], what: str) -> int:
    """Elements of which the rank holds such states: experts are divided over their own data parallel ranks."""
    degrees = plan.degrees
    if not degrees.expert_shard or degrees.sharding not in SHARDED_FROM[what]:
        return _share(plan, sum(w.elements * w.count for w in weights), what)
    experts = sum(w.elements * w.count for w in weights if w.name.startswith("experts."))
    rest = sum(w.elements * w.count for w in weights) - experts
    return -(-rest // degrees.shard) - (-experts // degrees.expert_shard)


def _share(plan: Plan, elements: int, what: str) -> int:
    """The rank's part of `elements`, padded to equal shards."""
    sharded = plan.degrees.sharding in SHARDED_FROM[what]
    return -(-elements // plan.degrees.shard) if sharded else elements


def _parameter_bytes(plan: Plan, weights: list[Weight]) -> int:
    """Weights as they are stored: quantised where the base is, adapters in their own format."""
    lora = plan.lora
    if lora is None:
        narrow = sum(w.elements * w.count for w in weights if in_8_bits(plan, w)) if plan.fp8_parameters else 0
        wide = ITEMSIZE[plan.formats.parameters]
        return _owned(plan, weights, "parameters") * wide - _share(plan, narrow, "parameters") * (wide - ITEMSIZE["float8"])
    total = 0
    for weight in weights:
        if weight.trainable:
            size = weight.elements * ITEMSIZE[lora.adapter_dtype]
        elif lora.base_dtype in QUANTISED and quantisable(weight.name, profile_of(plan.profile).whole):
            size = stored_bytes(weight.elements, lora.base_dtype, double_quant=lora.double_quant)
        else:
            size = weight.elements * ITEMSIZE[plan.formats.parameters]
        total += size * weight.count
    return _share(plan, total, "parameters")


def quantisable(name: str, whole: frozenset[str]) -> bool:
    """Whether the weight is quantised: every linear layer but those that stay whole (transformers: the head)."""
    return name.startswith("linear.") and name.removeprefix("linear.") not in whole


def step_temporary_bytes(plan: Plan, states: States) -> int:
    """What the optimizer's step allocates for a moment, on this rank's shard."""
    temporary = step_temporary(plan.optimizer, plan.implementation)
    if plan.in_backward:  # an optimizer for each parameter: what is a copy of all is one of the largest
        temporary = StepTemporary(largest=temporary.all + temporary.largest)
    trained, itemsize = states.owned, state_itemsize(plan)
    partition = _partition_bytes(plan, trained, states.largest)
    largest = temporary.largest * min(states.largest, trained) if temporary.largest else 0
    return (temporary.all * trained + largest) * itemsize + partition


SUB_GROUP = 1_000_000_000
"""deepspeed runtime/zero/config.py: sub_group_size, in elements."""


def _partition_bytes(plan: Plan, trained: int, largest: int) -> int:
    """DeepSpeed's step on the rank's partition of the gradients: flattened (a copy) and cast to float32 (stage_1_and_2.py: step,
    get_flat_partition); stage 3 casts one sub-group at a time (stage3.py: _prepare_sub_group)."""
    formats = plan.formats
    itemsize = ITEMSIZE[formats.gradients]
    if not plan.degrees.sharding.startswith("zero") or formats.master_weights != "float32" or itemsize == ITEMSIZE["float32"]:
        return 0
    if profile_of(plan.profile).low_level_zero:  # low_level_optim.py, step: all shards in fp32 beside the 16-bit ones, norms in float64
        return ITEMSIZE["float32"] * trained + 2 * ITEMSIZE["float32"] * -(-largest // plan.degrees.shard)
    if plan.degrees.sharding == "zero3":
        return ITEMSIZE["float32"] * min(trained, SUB_GROUP)
    return (ITEMSIZE["float32"] + itemsize) * trained
