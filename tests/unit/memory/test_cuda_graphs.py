"""CUDA graphs: what is in their pool, that nothing else uses it, and that it is never given back."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import MIB, job_of, plan_of

from peakgate.memory.allocator import PRIVATE, CachingAllocator, OutOfMemoryError
from peakgate.memory.expandable import ExpandableAllocator
from peakgate.memory.pipeline import stages
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.memory.step import Walk, walk

LAYERS, H = 4, 512
Fields = dict[str, object]


def a_job(graphs: str, framework: str = "megatron", **fields: object) -> Fields:
    """A small model in four micro-batches."""
    sizes: Fields = {"layers": LAYERS, "hidden_size": H, "heads": 8, "kv_heads": 8, "ffn_hidden_size": 1408, "vocab_size": 32000}
    return {
        "model": {"transformer": {"block": "llama", **sizes}},
        "batch": {"micro_batch_size": 1, "sequence_length": 1024, "gradient_accumulation_steps": 4},
        "precision": {"recipe": "megatron-bf16" if framework == "megatron" else "bf16"},
        "optimizer": {"name": "adamw", "implementation": "foreach"},
        "framework": {"name": framework, "cuda_graphs": graphs},
        "gpu": {"type": "h100-80gb", "count": 1},
        **fields,
    }


def answer(graphs: str, framework: str = "megatron", **fields: object) -> Prediction:
    """Its prediction, replayed."""
    return predict(job_of(a_job(graphs, framework, **fields)), exact=True)


def walked(graphs: str) -> Walk:
    """Its walk."""
    plan = plan_of(job_of(a_job(graphs)))
    (stage,) = stages(plan.degrees, LAYERS, 4)
    return walk(plan, stage)


@pytest.mark.parametrize("kind", [CachingAllocator, ExpandableAllocator])
def test_a_graphs_pool_is_neither_shared_nor_flushed(kind: type[CachingAllocator]) -> None:
    """A block that a graph gave back serves the graph alone, and is no room for others when memory is short."""
    allocator = kind(100 * MIB)
    allocator.free(allocator.malloc(60 * MIB, PRIVATE))
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(60 * MIB)
    allocator.malloc(60 * MIB, PRIVATE)
    assert allocator.highest_reserved <= 80 * MIB


def test_a_whole_iteration_is_one_pool() -> None:
    """All that forward and backward passes allocate; the optimizer's temporaries stay outside."""
    plain, graphed = walked("none"), walked("full-iteration")
    assert graphed.pools[PRIVATE] == max(plain.highs[phase].blocks for phase in ("forward", "loss", "backward"))
    assert graphed.pools[""] < plain.pools[""]
    assert {phase: high.blocks for phase, high in graphed.highs.items()} == {phase: high.blocks for phase, high in plain.highs.items()}


def test_layers_share_a_pool_and_the_head_stays_outside() -> None:
    """What layers keep and what they allocate for a moment, against embedding, head and loss."""
    plain, graphed = walked("none"), walked("per-layer")
    assert graphed.pools[PRIVATE] >= graphed.held_per_micro_batch * 9 // 10
    assert 0 < graphed.pools[""] < plain.pools[""]
    assert graphed.pools[PRIVATE] + graphed.pools[""] >= plain.pools[""]


@pytest.mark.parametrize("graphs", ["per-layer", "full-iteration"])
def test_graphs_reserve_more_and_may_need_more(graphs: str) -> None:
    """Nothing of the pool serves the optimizer or the head."""
    plain, graphed = answer("none"), answer(graphs)
    assert graphed.undecided == plain.undecided == ()
    assert graphed.reserved_bytes > plain.reserved_bytes
    assert graphed.allocated_bytes >= plain.allocated_bytes
    assert sum(line.bytes for line in graphed.ledger) == graphed.device_bytes


def test_a_plain_loop_in_one_graph_cannot_lend_its_activations_to_the_optimizer() -> None:
    """With foreach kernels the copy of all square roots lies beside the pool."""
    plain, graphed = answer("none", "huggingface"), answer("full-iteration", "huggingface")
    assert graphed.undecided == ()
    assert graphed.required_bytes > plain.required_bytes + plain.parameters


def test_each_micro_batch_of_an_iteration_has_a_buffer() -> None:
    """Token and label of every micro-batch that one graph reads."""
    (line,) = (line for line in answer("full-iteration").ledger if "static" in line.item)
    assert line.bytes == 4 * 1024 * 16


@pytest.mark.parametrize(
    ("graphs", "framework", "fields", "want"),
    [
        ("per-layer", "huggingface", {}, "per layer are Megatron-LM's"),
        ("full-iteration", "huggingface", {"parallelism": {"sharding": "fsdp", "world_size": 2}, "gpu": {"count": 2}}, "sharded states"),
    ],
)
def test_what_is_not_counted_is_undecided(graphs: str, framework: str, fields: Fields, want: str) -> None:
    """Graphs that copy what no source states."""
    assert any(want in note for note in predict(job_of(a_job(graphs, framework, **fields))).undecided)
