"""Which data parallelism a plan runs, by its sharding and the version of FSDP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.flat_parameter import FlatParameters, FlatParametersAdded
from peakgate.memory.fully_shard import FullyShard
from peakgate.memory.fully_shard_added import FullyShardAdded, FullyShardPipeline
from peakgate.memory.low_level_zero import LowLevelZero
from peakgate.memory.plan import FSDP2, SHARDED, ZERO, Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.sharding import Sharding
from peakgate.memory.zero import Zero

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine
    from peakgate.memory.tape import Layer


def shards(plan: Plan) -> bool:
    """Whether ranks hold shards that are counted here (Megatron's distributed optimizer has buffers of its own)."""
    buckets = plan.degrees.sharding not in ZERO or profile_of(plan.profile).zero_buckets
    return plan.degrees.shard > 1 and plan.degrees.sharding in SHARDED and buckets and plan.profile != "textbook"


def sharding_of(machine: Machine, census: Census | None, last: Layer) -> Sharding:
    """The events of a rank; `last`: its last layer. Without a census nothing is sharded."""
    plan = machine.plan
    if census is None:
        return Sharding(machine)
    if plan.degrees.sharding in ZERO:
        return (LowLevelZero if profile_of(plan.profile).low_level_zero else Zero)(machine, census)
    whole = plan.accumulation > 1 and profile_of(plan.framework).adds_up_whole  # the loop is its own, whoever's modules it trains
    if plan.fsdp_version == FSDP2 and plan.degrees.pipeline > 1:
        return FullyShardPipeline(machine, census, last)
    if plan.fsdp_version == FSDP2:
        return (FullyShardAdded if whole else FullyShard)(machine, census, last)
    return (FlatParametersAdded if whole else FlatParameters)(machine, census)
