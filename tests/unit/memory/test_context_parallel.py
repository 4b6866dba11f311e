"""Context parallelism: buffers for the keys and values of other ranks, by the way in which they come."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job, a_plan, a_transformer, first_walk

from peakgate.memory.change import Value
from peakgate.memory.context_parallel import KERNELS, context_dims
from peakgate.memory.kernels import Kernel
from peakgate.memory.plan import Degrees
from peakgate.memory.predict import predict
from peakgate.memory.saved_bytes import saved_bytes_per_layer

RANKS: dict[str, Value] = {"parallelism.context": 4, "parallelism.world_size": 4, "batch.sequence_length": 512}
WAYS = ("all-gather", "ring", "ulysses")


def of(framework: str, way: str, attention: str = "flash") -> dict[str, Value]:
    """A job's changes."""
    return {**RANKS, "framework.name": framework, "parallelism.context_type": way, "attention.implementation": attention}


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_row_lets_go_of_what_it_names(name: str) -> None:
    """Each buffer is freed once and no sooner than it is made, in both directions."""
    kernel: Kernel = KERNELS[name]
    for steps in (kernel.forward, kernel.rules[0].steps):
        alive: list[str] = []
        for step in steps:
            if step.free:
                alive.remove(step.name)
            else:
                assert step.name not in alive
                alive.append(step.name)


@pytest.mark.parametrize("framework", ["huggingface", "torch", "torchtitan", "megatron", "deepspeed"])
@pytest.mark.parametrize("way", WAYS)
def test_flash_attention_is_counted(framework: str, way: str) -> None:
    """Whatever the framework and the way; an eager core is not, and the answer says so."""
    assert not any("context" in note for note in predict(a_job(of(framework, way))).undecided)
    assert any("context" in note for note in predict(a_job(of(framework, way, "eager"))).undecided)


@pytest.mark.parametrize("way", ["all-gather", "ring"])
def test_torchs_ring_keeps_what_one_rank_keeps(way: str) -> None:
    """Autograd saves the rank's own queries, keys and values, the merged output and its statistics: a quarter of the whole sequence."""
    whole = saved_bytes_per_layer(a_plan({"framework.name": "torch", "attention.implementation": "flash", "batch.sequence_length": 512}))
    assert saved_bytes_per_layer(a_plan(of("torch", way))) == pytest.approx(whole / 4, rel=1e-3)  # 24 bytes of random state


def test_ulysses_keeps_queries_keys_and_values_with_other_heads() -> None:
    """The exchanged tensors are kept in place of the rank's own, and the output twice: before and behind its exchange."""
    plan = a_plan(of("torch", "ulysses"))
    d, tokens = plan.architecture.dims, 2 * 512 // 4
    assert saved_bytes_per_layer(plan) - saved_bytes_per_layer(a_plan(of("torch", "ring"))) == 2 * tokens * d["q"]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_an_all_gather_holds_every_ranks_keys_and_values(ranks: int) -> None:
    """The step from one way to the other: the gathered buffer in place of two of one rank's."""
    degrees: dict[str, Value] = {"parallelism.context": ranks, "parallelism.world_size": ranks, "batch.sequence_length": 4096}
    peaks = [
        first_walk(plan).highs["forward"].live
        for plan in (a_plan({**of("torch", way), **degrees, "checkpointing.mode": "full"}) for way in ("all-gather", "ring"))
    ]
    d = a_plan().architecture.dims
    assert peaks[0] - peaks[1] == 2 * 4096 // ranks * 2 * d["kv"] * 2 * (ranks - 2)


def test_the_engines_ring_names_a_buffer_for_every_step() -> None:
    """Transformer Engine's list of buffers grows with the ranks while each buffer falls: keys and values of the whole sequence in all."""
    assert [context_dims(Degrees(context=n), 8)["others"] for n in (2, 4, 8)] == [1, 3, 7]


@pytest.mark.parametrize(("framework", "want"), [("torchtitan", "all-gather"), ("megatron", "ring"), ("deepspeed", "ulysses")])
def test_a_framework_has_its_own_way(framework: str, want: str) -> None:
    """The default is said among the assumptions."""
    job = a_job({**RANKS, "framework.name": framework})
    assert any(note.startswith(f"parallelism.context_type: {want}") for note in predict(job).assumptions)


@pytest.mark.parametrize("mode", ["full", "selective"])
@pytest.mark.parametrize("way", ["all-gather", "ring"])
def test_a_compiled_layer_calls_the_ring(mode: str, way: str) -> None:
    """torchtitan's compiled layers have the buffers as well: the step needs more than one without them."""
    changes = {**of("torchtitan", way), "framework.compile": True, "checkpointing.mode": mode, "batch.sequence_length": 4096}
    ringed = predict(a_job(changes, model=a_transformer(layers=2)))
    alone = predict(a_job({**changes, "parallelism.context": 1, "batch.sequence_length": 1024}, model=a_transformer(layers=2)))
    assert not any("context" in note for note in ringed.undecided)
    assert ringed.allocated_bytes > alone.allocated_bytes
