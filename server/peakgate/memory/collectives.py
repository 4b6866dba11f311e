"""Which data parallelism a plan runs, by its sharding and the version of FSDP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.flat_parameter import AddsUpWhole, FlatParameters
from peakgate.memory.fully_shard import FullyShard
from peakgate.memory.fully_shard_added import FullyShardAdded
from peakgate.memory.fully_shard_pipeline import FullyShardPipeline
from peakgate.memory.low_level_zero import LowLevelZero
from peakgate.memory.profiles import profile_of
from peakgate.memory.sharding import BUCKETED, SHARDED, Sharding
from peakgate.memory.zero import Zero

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine
    from peakgate.memory.plan import Plan
    from peakgate.memory.tape import Layer

FSDP2 = 2


def shards(plan: Plan) -> bool:
    """Whether ranks hold shards that are counted here (Megatron's distributed optimizer has buffers of its own)."""
    buckets = plan.degrees.sharding not in BUCKETED or profile_of(plan.profile).zero_buckets
    return plan.degrees.shard > 1 and plan.degrees.sharding in SHARDED and buckets and plan.profile != "textbook"


def sharding_of(machine: Machine, census: Census | None, last: Layer) -> Sharding:
    """The events of a rank; `last`: its last layer. Without a census nothing is sharded."""
    plan = machine.plan
    if census is None:
        return Sharding(machine)
    if plan.degrees.sharding in BUCKETED:
        return (LowLevelZero if profile_of(plan.profile).low_level_zero else Zero)(machine, census)
    whole = plan.accumulation > 1 and profile_of(plan.framework).adds_up_whole
    if plan.fsdp_version == FSDP2 and plan.degrees.pipeline > 1:
        return FullyShardPipeline(machine, census, last)
    if plan.fsdp_version == FSDP2:
        return (FullyShardAdded if whole else FullyShard)(machine, census, last)
    return (AddsUpWhole if whole else FlatParameters)(machine, census)
