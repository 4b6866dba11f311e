"""Gathered weights and reduced gradients on CUDA streams of their own, and what that costs in reserved bytes."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job, a_plan, a_transformer, first_walk, stages_of

from peakgate.memory.change import Value
from peakgate.memory.fully_shard import ALL_GATHER, REDUCE_SCATTER
from peakgate.memory.meter import Meter
from peakgate.memory.plan import Plan
from peakgate.memory.pools import COMPUTE
from peakgate.memory.predict import predict
from peakgate.memory.step import Walk
from peakgate.memory.weighing import census

FSDP2: dict[str, Value] = {
    "parallelism.sharding": "fsdp",
    "parallelism.world_size": 4,
    "framework.fsdp.version": 2,
    "precision.recipe": "fsdp-bf16",
}
MODEL = a_transformer(hidden_size=512, ffn_hidden_size=1024, vocab_size=4096, layers=6)


def planned(changes: dict[str, Value] | None = None) -> Plan:
    """A Llama of 6 layers on four ranks."""
    return a_plan(FSDP2 | (changes or {}), model=MODEL)


def walked(changes: dict[str, Value] | None = None, *, record: bool = False) -> Walk:
    """Its step."""
    return first_walk(planned(changes), record=record)


def units(plan: Plan) -> tuple[int, int]:
    """Elements of a layer, and of the root."""
    counted = census(plan, stages_of(plan)[0])
    return sum(counted.layers["every"]), sum(counted.embedding) + sum(counted.head)


def test_the_all_gather_pool_holds_two_units_and_a_shard() -> None:
    """The root's output is held until the first layer is copied out: 2 bytes an element of both, and of that layer's quarter."""
    layer, root = units(planned())
    assert walked().pools[ALL_GATHER] == pytest.approx(2 * (root + layer + layer / 4), rel=0.01)


def test_gradient_shards_are_a_pool_of_their_own() -> None:
    """fp32 parameters take the reduce-scatter's output as their gradient: 4 bytes of each shard element."""
    layer, root = units(planned())
    assert walked().pools[REDUCE_SCATTER] == pytest.approx(4 * (6 * layer + root) / 4, rel=0.01)


def test_accumulation_holds_one_more_shard_while_it_is_added() -> None:
    """Where each micro-batch is reduced, its output is added to the shard that is there."""
    _, root = units(planned())
    own: dict[str, Value] = {"framework.name": "torch"}
    once, twice = walked(own).pools[REDUCE_SCATTER], walked({**own, "batch.gradient_accumulation_steps": 2}).pools[REDUCE_SCATTER]
    assert twice - once == pytest.approx(4 * root / 4, rel=0.01)


@pytest.mark.parametrize(
    "changes", [{}, {"checkpointing.mode": "full"}, {"framework.fsdp.version": 1}, {"framework.fsdp.reshard_after_forward": False}]
)
def test_a_walk_of_each_layer_is_the_repeated_walk(changes: dict[str, Value]) -> None:
    """Pools and highest moments are the same whether equal layers are walked once or one by one."""
    short, long = walked(changes), walked(changes, record=True)
    assert short.pools == long.pools
    assert {phase: (high.live, high.blocks) for phase, high in short.highs.items()} == {
        phase: (high.live, high.blocks) for phase, high in long.highs.items()
    }


@pytest.mark.parametrize("version", [1, 2])
def test_everything_but_shards_is_freed(version: int) -> None:
    """At the end of a step only gradient shards are live: no gathered weight, no output, no reduce-scatter input."""
    recorded = walked({"framework.fsdp.version": version}, record=True)
    live: dict[int, int] = {}
    for number, nbytes in recorded.events:
        if nbytes > 0:
            live[number] = nbytes
        else:
            assert live.pop(number) == -nbytes
    assert {recorded.streams.get(number, COMPUTE) for number in live} == {"reduce-scatter" if version == 2 else "post-backward"}


def test_8_bit_weights_are_gathered_in_one_byte() -> None:
    """Linear weights of the layers; norms, embedding and head stay 16-bit (torchao float8/fsdp_utils.py)."""
    titan: dict[str, Value] = {"framework.name": "torchtitan", "precision.compute": "float8"}
    wide, narrow = (walked(titan | {"precision.fp8.param_gather": value}).pools[ALL_GATHER] for value in (False, True))
    assert narrow < wide


def test_a_hybrid_shards_inside_a_node() -> None:
    """Without a stated degree a node's GPUs share one copy."""
    shards: dict[str, Value] = {"parallelism.sharding": "hsdp", "parallelism.world_size": 32}
    assert planned(shards).degrees.shard == 8
    assert planned(shards | {"node.gpus": 4}).degrees.shard == 4


def test_other_streams_are_reserved_on_top() -> None:
    """Reserved is the sum of the pools' highest moments, so a sharded job reserves more above what it allocates."""
    answer = predict(a_job(FSDP2, model=MODEL), exact=True)
    assert answer.reserved_bytes >= sum(walked().pools.values())


def test_repetitions_count_in_every_pool() -> None:
    """What grows in each of them grows so many times; what comes and goes does not."""
    meter = Meter(lambda nbytes: nbytes)
    with meter.pools.repeated(5):
        meter.add(10, 10, "gradients", "side")
        meter.sub(30, 30, "temporaries", meter.add(30, 30, "temporaries"))
    assert meter.pools.now == {"": 0, "side": 50}
    assert meter.pools.high == {"": 30, "side": 50}
