"""Adapters on Hugging Face models: dropout before them, and frozen 4-bit weights below them."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job

from peakgate.memory.change import Value
from peakgate.memory.job import Lora
from peakgate.memory.predict import predict

TOKENS, HIDDEN, VOCABULARY = 2 * 32, 64, 250
ADAPTERS = Lora(rank=4, targets=("q_proj", "v_proj"), adapter_dtype="bfloat16")


def lora(**fields: str | float | bool) -> Lora:
    """Adapters on queries and values in bfloat16, with more said of them."""
    return Lora(rank=4, targets=("q_proj", "v_proj"), adapter_dtype="bfloat16", **fields)  # type: ignore[arg-type]  # fields of Lora


def test_dropout_before_adapters_is_kept() -> None:
    """nn.Dropout before lora_A: each adapter keeps a mask of a byte and its own dropped input, and no longer the shared one."""
    plain, dropped = (predict(a_job(lora=lora(dropout=p))).saved_activation_bytes_per_layer for p in (0.0, 0.1))
    assert dropped - plain == pytest.approx(TOKENS * HIDDEN * (2 * (1 + 2) - 2), rel=0.51)  # the first of two layers keeps no masks


@pytest.mark.parametrize("recipe", ["bf16", "amp-bf16"])
def test_what_is_not_quantised_is_in_the_recipes_format(recipe: str) -> None:
    """peft prepare_model_for_kbit_training casts norms, embedding and head to float32; qlora.py casts them back for bf16."""
    answer = predict(a_job({"precision.recipe": recipe}, lora=lora(base_dtype="nf4", double_quant=False)))
    itemsize = {"bf16": 2, "amp-bf16": 4}[recipe]
    adapters = 3 * 4 * (2 * 64 + 64 + 16)
    linear = 3 * (64 * 64 * 2 + 2 * 64 * 16 + 3 * 64 * 96)
    whole = 2 * VOCABULARY * HIDDEN + 7 * HIDDEN
    want = linear // 2 + 4 * linear // 64 + whole * itemsize + 2 * adapters
    assert next(line.bytes for line in answer.ledger if line.category == "parameters") == want
    assert answer.undecided == ()


def test_a_4_bit_weight_is_whole_for_a_moment() -> None:
    """bitsandbytes MatMul4Bit: in the compute format for each product; quantised scales are made whole first."""
    sizes = [
        predict(
            a_job({"batch.sequence_length": 2, "batch.micro_batch_size": 1}, lora=lora(base_dtype="nf4", double_quant=nested))
        ).live_bytes
        for nested in (False, True)
    ]
    assert sizes[0] != sizes[1]


@pytest.mark.parametrize("base", ["nf4", "int4"])
def test_autocast_over_4_bit_weights(base: str) -> None:
    """bitsandbytes Linear4bit.forward casts to the compute format and back: the hidden state stays fp32, products are 16 bit."""
    amp: dict[str, Value] = {"precision.recipe": "amp-bf16"}
    half, mixed = predict(a_job(lora=lora(base_dtype=base))), predict(a_job(amp, lora=lora(base_dtype=base)))
    assert mixed.saved_activation_bytes_per_layer > half.saved_activation_bytes_per_layer
    assert mixed.undecided == ()


def test_an_8_bit_product_keeps_its_input() -> None:
    """MatMul8bitLt hangs it on its context: a frozen 4-bit weight in the same place keeps nothing."""
    four, eight = (predict(a_job(lora=lora(base_dtype=base))) for base in ("nf4", "int8"))
    assert eight.saved_activation_bytes_per_layer >= four.saved_activation_bytes_per_layer
    assert eight.undecided == ()
    assert any("outlying columns" in each for each in eight.assumptions)


@pytest.mark.parametrize("recipe", ["bf16", "fp32", "amp-bf16"])
@pytest.mark.parametrize("mode", ["none", "full"])
def test_8_bit_weights_take_a_byte_each(recipe: str, mode: str) -> None:
    """In every recipe, with and without checkpoints, and the ledger sums."""
    answer = predict(a_job({"precision.recipe": recipe, "checkpointing.mode": mode}, lora=lora(base_dtype="int8")))
    linear = 3 * (64 * 64 * 2 + 2 * 64 * 16 + 3 * 64 * 96)
    assert next(line.bytes for line in answer.ledger if line.category == "parameters") > linear
    assert sum(line.bytes for line in answer.ledger) == answer.device_bytes


def test_an_8_bit_product_is_made_in_32_bits() -> None:
    """int8_linear_matmul gives int32, four bytes an output: of a long sequence more than weights made whole."""
    small: dict[str, Value] = {"batch.sequence_length": 4096, "checkpointing.mode": "full"}
    four, eight = (predict(a_job(small, lora=lora(base_dtype=base))).live_bytes for base in ("nf4", "int8"))
    assert eight > four


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_dora_adds_a_magnitude_for_each_output(dropout: float) -> None:
    """One number a row of the weight (peft tuners/lora/dora.py); its norms cost whole weights for a moment."""
    plain, scaled = (predict(a_job(lora=lora(method=name, dropout=dropout))) for name in ("lora", "dora"))
    assert scaled.trainable_parameters - plain.trainable_parameters == 3 * (64 + 16)
    assert scaled.allocated_bytes > plain.allocated_bytes
    assert scaled.undecided == ()
