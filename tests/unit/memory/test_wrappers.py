"""Frameworks around Hugging Face's modules: DeepSpeed and ColossalAI run their kernels; what they add are buffers."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job, a_plan, a_transformer

from peakgate.memory.change import Value
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction

WORLD = 4
MODEL = a_transformer(layers=4, hidden_size=512, ffn_hidden_size=2048, vocab_size=4000)


def answer(framework: str, **changes: Value) -> Prediction:
    """A small Llama; changes by field names with underscores for dots."""
    listed = {path.replace("_", ".", 1): value for path, value in changes.items()}
    return predict(
        a_job({"framework.name": framework, "loss.keep_logits": False, "optimizer.implementation": "fused", **listed}, model=MODEL)
    )


@pytest.mark.parametrize("framework", ["deepspeed", "colossalai"])
def test_on_one_gpu_the_figures_are_transformers(framework: str) -> None:
    """deepspeed.initialize and Booster.boost wrap the module that they are given."""
    own, plain = answer(framework), answer("huggingface")
    assert own.undecided == ()
    assert own.allocated_bytes == plain.allocated_bytes


def test_colossalai_casts_every_shard_before_the_step() -> None:
    """2P of weights, 12P/N of states, 2P/N of gradient shards, 4P/N of their fp32 copies, and the largest of them in float64."""
    seen = answer("colossalai", parallelism_sharding="zero2", parallelism_world_size=WORLD, precision_recipe="bf16-master")
    parameters, largest = seen.parameters, 4000 * 512
    by = {line.category: line.bytes for line in seen.ledger}
    assert seen.undecided == ()
    assert seen.peak_phase == "optimizer"
    assert by["gradients"] == pytest.approx(2 * parameters / WORLD, rel=1e-3)
    (temporary,) = (line.bytes for line in seen.ledger if line.item == "temporaries of kernels")
    assert temporary == pytest.approx(4 * parameters / WORLD + 8 * largest / WORLD, rel=1e-3)


def test_its_buckets_are_small() -> None:
    """12 Mi elements where DeepSpeed's have 500 million."""
    sizes = {name: a_plan({"framework.name": name}).reduce_bucket_elements for name in ("colossalai", "deepspeed", "huggingface")}
    assert sizes == {"colossalai": 12 << 20, "deepspeed": 500_000_000, "huggingface": 500_000_000}


def test_what_colossalai_does_otherwise_is_undecided() -> None:
    """Stage 1 and Gemini keep what was not read."""
    seen = answer("colossalai", parallelism_sharding="zero3", parallelism_world_size=WORLD)
    assert any("ColossalAI" in note for note in seen.undecided)
