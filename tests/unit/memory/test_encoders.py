"""Encoders and encoder-decoders: traced steps to the byte, parameter counts, heads, lengths, and what their configs say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.bench.accuracy import Json, at, number, rows, traced_sets
from tests.unit.memory.builders import a_job, a_transformer, job_of

from peakgate.memory.change import Value
from peakgate.memory.job import Job, Model, Transformer
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction

BLOCKS = ("bert", "vit", "t5", "bart", "whisper")
STACKED = ("t5", "mt5", "bart", "whisper")


def _traced() -> Iterator[tuple[str, Json]]:
    for path in traced_sets():
        for index, row in enumerate(rows(path.stem)):
            device = str(at(row, "architecture"))
            amp_on_cpu = device.endswith("/cpu") and str(at(row, "job.precision.recipe")).startswith("amp")
            if device.partition("/")[0] in BLOCKS and not amp_on_cpu and "id2label" not in str(row):
                yield f"{path.stem}-{index}-{device}", row


TRACED = {name: row for name, row in _traced() if name != "traced_fullsize-28-vit"}


@pytest.mark.parametrize("row", TRACED.values(), ids=TRACED)
def test_a_traced_step_is_walked_to_the_byte(row: Json) -> None:
    """Peaks of torch 2.13 and transformers 5.24 traced on the meta device: every allocation and free is a line of a block."""
    answer = predict(job_of(row["job"]))
    assert answer.undecided == ()
    assert answer.peak_phase == row["peak_phase"]
    assert answer.live_bytes == pytest.approx(number(row, "peak_live_bytes"), rel=1e-7)


PER_LAYER = {
    # 1 encoder + 1 decoder layer in bytes: b 2, s 128, h 256, f 640, a 8, bf16 (T = s*b; row statistics 8 bytes a norm and token)
    ("t5", "eager"): 74 * 256 * 256 + 4 * 256 * 640 + 20 * 256 + 6 * 8 * 128 * 128 * 2,
    ("bart", "eager"): 44 * 256 * 256 + 8 * 256 * 640 + 6 * 8 * 128 * 128 * 2 + 40 * 256,
    ("whisper", "eager"): 44 * 256 * 256 + 8 * 256 * 640 + 6 * 8 * 128 * 128 * 2 + 40 * 256,
}


@pytest.mark.parametrize(("block", "attention"), PER_LAYER)
def test_a_layer_of_two_stacks_is_one_encoder_and_one_decoder_layer(block: str, attention: str) -> None:
    """Saved bytes: T5 50Th + 24Tq + 4Tf + 20T, BART and Whisper 44Th + 8Tf + 40T, and eager 6as²b, all falling out of the operations."""
    t = Transformer(
        block=block,
        layers=2,
        encoder_layers=2,
        hidden_size=256,
        heads=8,
        head_dim=32,
        ffn_hidden_size=640,
        vocab_size=500,
        tied_embeddings=True,
    )
    answer = predict(a_job({"batch.sequence_length": 128, "batch.target_length": 128, "attention.implementation": attention}, model=t))
    assert answer.saved_activation_bytes_per_layer == pytest.approx(PER_LAYER[block, attention], rel=1e-4)


PUBLISHED = {
    # transformers 5.24.0: sum of numel() of the class's parameters, built from the configuration class with these values
    "BertForMaskedLM": (109_514_298, {"model_type": "bert", "num_hidden_layers": 12}),
    "BertForSequenceClassification": (45_695_237, {"model_type": "bert", "num_hidden_layers": 3, "id2label": dict.fromkeys("abcde", "")}),
    "BertForQuestionAnswering": (45_102_338, {"model_type": "bert", "num_hidden_layers": 3}),
}
BASE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522}

OTHERS = {
    "T5ForConditionalGeneration": (
        34_283_008,
        {
            "model_type": "t5",
            "num_layers": 3,
            "num_decoder_layers": 2,
            "d_model": 512,
            "d_kv": 64,
            "d_ff": 2048,
            "num_heads": 8,
            "vocab_size": 32128,
        },
    ),
    "MT5ForConditionalGeneration": (
        13_576_576,
        {"model_type": "mt5", "num_layers": 2, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_heads": 6, "vocab_size": 5000},
    ),
    "WhisperForConditionalGeneration": (
        44_302_336,
        {
            "model_type": "whisper",
            "encoder_layers": 2,
            "decoder_layers": 3,
            "d_model": 512,
            "encoder_ffn_dim": 2048,
            "decoder_ffn_dim": 1024,
            "encoder_attention_heads": 8,
            "decoder_attention_heads": 8,
            "num_mel_bins": 128,
            "max_source_positions": 1500,
            "max_target_positions": 448,
            "vocab_size": 51865,
        },
    ),
    "ViTForImageClassification": (
        23_731_970,
        {
            "model_type": "vit",
            "num_hidden_layers": 3,
            "hidden_size": 768,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "image_size": 384,
            "patch_size": 32,
            "qkv_bias": False,
        },
    ),
}


def _of_config(config: dict[str, object], name: str) -> Prediction:
    return predict(a_job({"batch.target_length": 16}, model=Model(hf_config={**config, "architectures": [name]})))


@pytest.mark.parametrize("name", [*PUBLISHED, *OTHERS])
def test_every_parameter_of_a_config_is_counted(name: str) -> None:
    """`architectures` names the head; tables of types, positions and buckets, convolutions and biases are all weights."""
    want, config = PUBLISHED[name] if name in PUBLISHED else OTHERS[name]
    assert _of_config({**(BASE if name in PUBLISHED else {}), **config}, name).parameters == want


def test_the_sinusoids_of_sound_are_not_trained() -> None:
    """transformers models/whisper/modeling_whisper.py: WhisperEncoder embeds positions with requires_grad_(False)."""
    want, config = OTHERS["WhisperForConditionalGeneration"]
    assert want - _of_config(config, "WhisperForConditionalGeneration").trainable_parameters == 1500 * 512


def test_a_config_without_dropouts_has_those_of_its_class() -> None:
    """transformers models/bert/configuration_bert.py: hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1."""
    silent = _of_config({**BASE, "model_type": "bert", "num_hidden_layers": 2}, "BertForMaskedLM")
    assert [a for a in silent.assumptions if a.startswith("dropout.")] == [
        "dropout.attention: 0.1 (the model's config)",
        "dropout.hidden: 0.1 (the model's config)",
    ]


def _stacked(block: str, **batch: int) -> Job:
    return a_job({f"batch.{name}": value for name, value in batch.items()}, model=a_transformer(block))


@pytest.mark.parametrize("block", STACKED)
def test_a_target_that_is_not_stated_is_as_long_as_the_sequence(block: str) -> None:
    """And the answer says so."""
    silent = predict(_stacked(block, sequence_length=64))
    assert any(a.startswith("batch.target_length: as long as the stated sequence") for a in silent.assumptions)
    assert silent.live_bytes == predict(_stacked(block, sequence_length=64, target_length=64)).live_bytes


@pytest.mark.parametrize("block", STACKED)
@pytest.mark.parametrize("longer", ["sequence_length", "target_length", "micro_batch_size"])
def test_more_never_needs_less(block: str, longer: str) -> None:
    """A longer source, a longer target or more sequences."""
    sizes = {"sequence_length": 64, "target_length": 32, "micro_batch_size": 4}
    less, more = (predict(_stacked(block, **{**sizes, longer: sizes[longer] * times})) for times in (1, 2))
    assert less.allocated_bytes <= more.allocated_bytes


def test_a_picture_says_how_many_tokens_it_has() -> None:
    """The config's own image when the batch does not state one: (384 / 32)² patches and a class token."""
    _, config = OTHERS["ViTForImageClassification"]
    stated = predict(a_job({"batch.sequence_length": 145}, model=Model(hf_config=config)))
    silent = predict(a_job({"batch.sequence_length": 0, "batch.image_size": 384, "batch.patch_size": 32}, model=Model(hf_config=config)))
    assert stated.live_bytes == silent.live_bytes


def test_a_head_without_kernels_is_undecided() -> None:
    """BERT as a bare encoder has no loss of its own."""
    assert any("head" in reason for reason in predict(a_job(model=_bert("none"))).undecided)


def _bert(head: str = "lm") -> Transformer:
    return Transformer(block="bert", head=head, layers=2, hidden_size=64, heads=4, vocab_size=100, max_positions=64)


def test_autocast_keeps_an_fp32_softmax() -> None:
    """aten autocast_mode.h runs softmax in fp32: probabilities of 4 bytes and the 16-bit copy that the product takes."""
    changes: dict[str, Value] = {"attention.implementation": "eager", "precision.recipe": "amp-bf16"}
    tall, short = (predict(a_job({**changes, "batch.sequence_length": s}, model=_bert())) for s in (64, 32))
    square = tall.saved_activation_bytes_per_layer - 2 * short.saved_activation_bytes_per_layer
    weights = 2 * (4 * 64 * 64 + 2 * 64 * 256)
    assert square == pytest.approx(6 * 4 * 2 * (64 * 64 - 2 * 32 * 32) - weights, abs=1)


PADDED = {
    # live bytes at the highest moment of the backward pass: torch 2.13, transformers 5.24, meta device, SGD, with an attention mask
    ("bert", "sdpa"): 3_298_284,
    ("bert", "eager"): 3_734_460,
    ("t5", "sdpa"): 7_890_516,
    ("t5", "eager"): 8_834_500,
    ("bart", "sdpa"): 6_235_300,
    ("bart", "eager"): 7_592_956,
}


@pytest.mark.parametrize(("block", "attention"), PADDED)
def test_a_padding_mask_is_one_a_sequence_in_every_layer(block: str, attention: str) -> None:
    """T5's bias becomes b·a·s² a layer (masking_utils.py create_bidirectional_mask, sdpa_attention.py create_position_bias_mask)."""
    t = Transformer(
        block=block,
        layers=3,
        encoder_layers=0 if block == "bert" else 3,
        hidden_size=96,
        ffn_hidden_size=416,
        heads=4,
        vocab_size=700,
        max_positions=1024,
        tied_embeddings=True,
    )
    changes: dict[str, Value] = {
        "batch.packed": False,
        "batch.sequence_length": 64,
        "attention.implementation": attention,
        "dropout.attention": 0.1,
        "dropout.hidden": 0.1,
        "optimizer.name": "sgd",
        "loss.keep_logits": True,
    }
    answer = predict(a_job(changes, model=t))
    assert answer.peak_phase == "backward"
    assert answer.live_bytes == pytest.approx(PADDED[block, attention], rel=1e-5)
