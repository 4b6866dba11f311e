"""8-bit products of Transformer Engine under Megatron-LM: saved bytes by the formula, copies of weights, and what is not counted."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import Fields, job_of

from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction

TOKENS, LAYERS, H, A, KV, F, V = 2048, 4, 1024, 8, 256, 2816, 32000
LINEAR = H * (H + 2 * KV) + H * H + 3 * H * F


def answer(precision: Fields, *, gpu: str = "h100-80gb", tensor: int = 1, block: str = "llama", **megatron: bool) -> Prediction:
    """The prediction for a small model."""
    heads: Fields = {"heads": A, "kv_heads": KV // 128, "head_dim": H // A}
    experts: Fields = {"experts": 4, "experts_per_token": 2} if block == "mixtral" else {}
    sizes: Fields = {"layers": LAYERS, "hidden_size": H, "ffn_hidden_size": F, "vocab_size": V, **heads, **experts}
    job: Fields = {
        "model": {"transformer": {"block": block, **sizes}},
        "batch": {"micro_batch_size": 1, "sequence_length": TOKENS, "gradient_accumulation_steps": 4},
        "precision": precision,
        "parallelism": {"tensor": tensor, "sequence_parallel": tensor > 1},
        "framework": {"name": "megatron", "megatron": {"cross_entropy_fusion": True, **megatron}},
        "gpu": {"type": gpu, "count": tensor},
    }
    return predict(job_of(job))


def kept(precision: Fields, *, gpu: str = "h100-80gb", tensor: int = 1) -> float:
    """Bytes a token that a layer keeps."""
    return answer(precision, gpu=gpu, tensor=tensor).saved_activation_bytes_per_layer / TOKENS


def copies(precision: Fields, gpu: str = "h100-80gb", tensor: int = 1) -> int:
    """Bytes of the 8-bit copies of weights."""
    return sum(line.bytes for line in answer(precision, gpu=gpu, tensor=tensor).ledger if "8-bit" in line.item)


@pytest.mark.parametrize(
    ("recipe", "gpu", "operand"),
    [("current", "h100-80gb", 1.0), ("current", "b200", 1.0), ("mxfp8", "b200", 33 / 32), ("blockwise", "h100-80gb", 33 / 32)],
)
def test_an_operand_is_kept_in_one_byte(recipe: str, gpu: str, operand: float) -> None:
    """The outputs of both norms and the input of the last product: two bytes each before; the output of attention is kept as it is."""
    assert kept({}) - kept({"fp8": {"recipe": recipe}}, gpu=gpu) == (2 * H + F) * (2 - operand)


def test_delayed_scaling_keeps_the_output_of_attention_twice() -> None:
    """Attention keeps it in 16 bits, the projection behind it in 8 (Megatron-LM transformer/attention.py)."""
    assert kept({"fp8": {"recipe": "delayed"}}) - kept({"fp8": {"recipe": "current"}}) == H
    assert kept({"compute": "float8"}) == kept({"fp8": {"recipe": "delayed"}})


def test_tensor_parallel_ranks_keep_what_they_had_before_the_gather() -> None:
    """With sequence parallelism every operand is divided."""
    whole, half = kept({"fp8": {"recipe": "current"}}), kept({"fp8": {"recipe": "current"}}, tensor=2)
    assert whole / half == pytest.approx(2, rel=1e-4)


@pytest.mark.parametrize(
    ("recipe", "gpu", "bytes_an_element"),
    [("current", "h100-80gb", 2), ("current", "b200", 1), ("mxfp8", "b200", 2 * 33 / 32), ("delayed", "h200-141gb", 2)],
)
def test_weights_have_copies_in_each_direction(recipe: str, gpu: str, bytes_an_element: float) -> None:
    """Hopper's products take one layout only, so a weight is turned over for the backward pass; head and embedding stay 16-bit."""
    assert copies({"fp8": {"recipe": recipe}}, gpu) == pytest.approx(LAYERS * LINEAR * bytes_an_element, rel=2e-3)
    assert copies({}, gpu) == 0


def test_the_copies_may_be_more_than_what_activations_save() -> None:
    """Two bytes a weight against a third of the operands: a short sequence needs more memory in 8 bits than in 16."""
    plain, eight = answer({}), answer({"fp8": {"recipe": "current"}})
    assert eight.undecided == plain.undecided == ()
    assert eight.allocated_bytes > plain.allocated_bytes


@pytest.mark.parametrize(("gpu", "saved"), [("h100-80gb", 2), ("b200", 2)])
def test_weights_may_be_8_bit_themselves(gpu: str, saved: int) -> None:
    """One byte in the buffer of parameters instead of two, and one copy less; master weights and gradients stay as they are."""

    def live(*, gathered: bool) -> int:
        return answer({"fp8": {"recipe": "current", "param_gather": gathered}}, gpu=gpu).live_bytes

    difference = live(gathered=False) - live(gathered=True)
    assert difference == pytest.approx(saved * LAYERS * LINEAR, rel=2e-3)
    assert any("precision.fp8.param_gather: false" in note for note in answer({"compute": "float8"}).assumptions)


@pytest.mark.parametrize(
    ("precision", "fields", "want"),
    [
        ({"fp8": {"recipe": "nvfp4"}}, {}, "products of nvfp4"),
        ({"fp8": {"recipe": "blockwise"}}, {"tensor": 2}, "products of blockwise"),
        ({"fp8": {"recipe": "current"}}, {"block": "mixtral"}, "experts and latent attention"),
        ({"fp8": {"recipe": "current"}}, {"gradient_accumulation_fusion": False}, "fused weight gradients"),
        ({"fp8": {"recipe": "mxfp8", "param_gather": True}}, {}, "precision.fp8.param_gather"),
        ({"fp8": {"recipe": "current", "keep_transpose": False}}, {}, "precision.fp8.keep_transpose"),
    ],
)
def test_what_is_not_counted_is_undecided(precision: Fields, fields: dict[str, object], want: str) -> None:
    """Each part by its name."""
    assert any(want in note for note in answer(precision, **fields).undecided)  # type: ignore[arg-type]  # the changes that answer takes
