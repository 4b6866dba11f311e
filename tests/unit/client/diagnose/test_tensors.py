"""Sizes of tensors against what an allocation asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.client.diagnose.acts_on import acting, categories_of
from peakgate.client.diagnose.dimensions import Dimensions, dimensions_of
from peakgate.client.diagnose.messages import Size
from peakgate.client.diagnose.tensors import asked_bytes, candidates, matching
from peakgate.v1.document import parse_job
from peakgate.v1.plain import plain_value
from peakgate.v1.prediction_pb2 import ModelFacts, Suggestion

MIB, GIB = 2**20, 2**30
LLAMA = Dimensions(b=1, s=4096, V=128256, h=4096, f=14336, a=32, q=4096, k=1024, P=8030261248, T=8030261248, layer=218112000, shards=8)


@pytest.mark.parametrize(
    ("size", "want"),
    [(1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB - 1024, 20 * MIB), (10 * MIB, 10 * MIB), (823410688, 786 * MIB)],
)
def test_the_allocator_asks_in_segments(size: int, want: int) -> None:
    """Small requests ask for 2 MiB, those up to 10 MiB for 20, larger ones for whole pieces of 2 MiB."""
    assert asked_bytes(size) == want


@given(st.integers(10 * MIB, 200 * GIB))
def test_a_request_is_never_less_than_its_tensor(size: int) -> None:
    """And never 2 MiB more."""
    assert 0 <= asked_bytes(size) - size < 2 * MIB


def test_exact_matches_leave_near_ones_out() -> None:
    """Float32 logits of 4096 tokens are found to the digit, and nothing beside them."""
    found = matching(Size(round(1.96 * GIB), 0.005 * GIB), list(candidates(LLAMA)), "loss", by_allocator=True)
    assert next(each.item for each in found) == "logits, float32"
    assert all(each.exact for each in found)


def test_a_near_size_says_that_it_is_near() -> None:
    """A padded vocabulary is half a percent away at most."""
    padded = Size(4096 * 128512 * 4)
    found = matching(padded, list(candidates(LLAMA)), "loss", by_allocator=True)
    assert found
    assert not found[0].exact


@pytest.mark.parametrize("size", [2 * MIB, 20 * MIB, 333 * GIB])
def test_a_size_that_says_nothing_names_no_tensor(size: int) -> None:
    """A segment that holds anything small, and a size that nothing has."""
    assert matching(Size(size, 0.005 * GIB), list(candidates(LLAMA)), "", by_allocator=True) == []


def test_the_stage_decides_between_equal_tensors() -> None:
    """A float32 buffer of all trained parameters is the gradients in the backward pass, the master weights when the optimizer is set up."""
    size = Size(8030261248 * 4, 0.005 * GIB)
    first = [matching(size, list(candidates(LLAMA)), stage, by_allocator=True)[0].category(stage) for stage in ("backward", "setup")]
    assert first == ["gradients", "master_weights"]


def test_parallel_degrees_divide() -> None:
    """What a rank holds under tensor, pipeline and context parallelism; the rest of the world divides the states."""
    job = parse_job(
        {
            "model": {
                "transformer": {"block": "llama", "layers": 32, "hidden_size": 4096, "heads": 32, "kv_heads": 8, "vocab_size": 128256}
            },
            "batch": {"micro_batch_size": 2, "sequence_length": 8192},
            "method": {"sequences_per_example": 2},
            "parallelism": {"world_size": 64, "tensor": 4, "pipeline": 2, "context": 2},
        }
    )
    sizes = dimensions_of(job, ModelFacts(parameters=8 * 10**9, trainable_parameters=8 * 10**9), [])
    assert (sizes.b, sizes.s, sizes.V, sizes.a, sizes.q, sizes.k) == (4, 4096, 32064, 8, 1024, 256)
    assert (sizes.P, sizes.shards) == (10**9, 8)


def test_a_config_gives_the_same_sizes() -> None:
    """The names of GPT-2's config.json, and of a model inside another."""
    inner = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
    for config in (inner, {"model_type": "pair", "text_config": inner}):
        job = parse_job({"model": {"hf_config": config}, "batch": {"micro_batch_size": 1, "sequence_length": 1024}})
        sizes = dimensions_of(job, ModelFacts(parameters=124439808, trainable_parameters=124439808), [])
        assert (sizes.h, sizes.V, sizes.a, sizes.f, sizes.q) == (768, 50257, 12, 3072, 768)
        assert abs(sizes.layer - 7087872) <= 768


def a_suggestion(fits: bool, **changes: object) -> Suggestion:
    """A change of these fields, dots written as __."""
    suggestion = Suggestion(fits=fits)
    for path, value in changes.items():
        suggestion.changes[path.replace("__", ".")].string_value = str(value)
    return suggestion


def test_fields_act_on_lines_of_the_ledger() -> None:
    """The longest path wins; a larger card acts on everything."""
    assert categories_of("offload.activations") == frozenset({"activations"})
    assert categories_of("optimizer.implementation") == frozenset({"step_buffers"})
    assert categories_of("gpu.type") is None
    assert "parameters" not in (categories_of("batch.micro_batch_size") or ())


def test_suggestions_are_chosen_by_category() -> None:
    """Of what is suggested only that stays which acts; what fits comes first, then what acts on the first category."""
    attention = a_suggestion(True, attention__implementation="flash")
    loss = a_suggestion(True, loss__implementation="chunked")
    card = a_suggestion(True, gpu__type="h200-141gb")
    small = a_suggestion(False, batch__micro_batch_size=1)
    kept = acting([attention, loss, card, small], ("logits",))
    assert [plain_value(next(iter(each.changes.values()))) for each in kept] == ["chunked", "h200-141gb", "1"]
