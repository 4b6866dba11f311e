"""NeMo 1: references, precision levels, Hydra's words, tuning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.launched import a_config, a_launch, launch_of, read, values

from peakgate.readers.nemo import NemoReader

GPT = """
trainer: {devices: 8, num_nodes: 2, precision: bf16}
model:
  micro_batch_size: 2
  global_batch_size: 64
  tensor_model_parallel_size: 2
  encoder_seq_length: 2048
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 8
  hidden_size: 512
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 8
  megatron_amp_O2: true
  optim: {name: distributed_fused_adam}
"""


def fields(text: str) -> dict[str, object]:
    """The fields of a config."""
    return values(read(NemoReader(), a_config(text)))


def test_references_are_resolved() -> None:
    """A setting of the same section, and a product."""
    found = fields(GPT)
    assert found["model.transformer.max_positions"] == 2048
    assert found["model.transformer.ffn_hidden_size"] == 2048


@pytest.mark.parametrize(
    "text", ["${.a}", "${model.num_layers}", "${model.missing}", "${multiply:${.num_layers},${.num_layers}}", "${oc.env:X}"]
)
def test_references_that_lead_nowhere_end(text: str) -> None:
    """Circles and what the environment says are null."""
    found = fields(GPT.replace("num_layers: 8", f"num_layers: {text}\n  a: ${{.num_layers}}"))
    assert "model.transformer.layers" not in found


def test_trainer_says_how_many_gpus() -> None:
    """devices × nodes; the data degree follows."""
    found = fields(GPT)
    assert (found["parallelism.world_size"], found["node.gpus"]) == (16, 8)
    assert found["batch.gradient_accumulation_steps"] == 4


@pytest.mark.parametrize(
    ("precision", "level", "want"),
    [
        ("bf16", "true", "megatron-bf16"),
        ("bf16-mixed", "false", "amp-bf16"),
        ("16", "true", "megatron-fp16"),
        ("16", "false", "amp-fp16"),
        ("32", "false", "fp32"),
    ],
)
def test_precision_has_levels(precision: str, level: str, want: str) -> None:
    """megatron_amp_O2: 16-bit weights with fp32 masters; without it autocast."""
    text = GPT.replace("precision: bf16", f"precision: {precision}").replace("megatron_amp_O2: true", f"megatron_amp_O2: {level}")
    assert fields(text)["precision.recipe"] == want


@pytest.mark.parametrize(
    ("activation", "position", "want"),
    [("fast-swiglu", "rope", "llama"), ("squared-relu", "rope", "nemotron"), ("gelu", "learned_absolute", "gpt3")],
)
def test_the_activation_decides_the_block(activation: str, position: str, want: str) -> None:
    """By NeMo's names."""
    found = fields(GPT + f"  activation: {activation}\n  position_embedding_type: {position}\n")
    assert found["model.transformer.block"] == want


@pytest.mark.parametrize(
    ("settings_text", "want"),
    [
        ("activations_checkpoint_granularity: selective", {"mode": "selective"}),
        (
            "activations_checkpoint_granularity: full\n  activations_checkpoint_method: uniform\n  activations_checkpoint_num_layers: 2",
            {"mode": "full", "every": 2},
        ),
        (
            "activations_checkpoint_granularity: full\n  activations_checkpoint_method: block\n  activations_checkpoint_num_layers: 0",
            {"mode": "none"},
        ),
        ("activations_checkpoint_method: block\n  activations_checkpoint_num_layers: 3", {"mode": "none"}),
    ],
)
def test_recomputation(settings_text: str, want: dict[str, object]) -> None:
    """A method without a granularity recomputes nothing."""
    found = fields(GPT + f"  {settings_text}\n")
    assert {path.removeprefix("checkpointing."): value for path, value in found.items() if path.startswith("checkpointing.")} == want


def test_fp8_needs_its_switch() -> None:
    """fp8_hybrid alone is the format of 8-bit products that are off."""
    assert "precision.fp8.recipe" not in fields(GPT + "  fp8: false\n  fp8_hybrid: true\n")
    assert fields(GPT + "  fp8: true\n  fp8_hybrid: true\n")["precision.fp8.recipe"] == "delayed"


def test_words_win_over_the_config() -> None:
    """Hydra's words, with + and ++ in front."""
    launch = a_launch(
        "megatron_gpt_pretraining.py --config-path conf --config-name c model.num_layers=3 ++model.fp8=true", files={"conf/c.yaml": GPT}
    )
    found = values(read(NemoReader(), launch))
    assert found["model.transformer.layers"] == 3
    assert found["precision.compute"] == "float8"


def test_a_config_that_is_not_at_hand_gives_no_defaults() -> None:
    """What only the container has is a warning, and neither dropout nor precision is made up."""
    launch = a_launch("megatron_gpt_pretraining.py model.micro_batch_size=4 trainer.devices=8")
    reading = read(NemoReader(), launch)
    assert len(reading.warnings) == 1
    assert not {"dropout.attention", "precision.recipe"} & set(reading.fields)
    assert reading.unread


def test_pictures_are_not_read_as_a_language_model() -> None:
    """A vision tower, or a model of pictures."""
    reading = read(NemoReader(), a_config(GPT + "  mm_cfg: {vision_encoder: {from_pretrained: x}}\n"))
    assert "pictures" in reading.unread[0]
    assert "model.transformer.block" not in reading.fields


def test_tuning_pads_unless_it_packs() -> None:
    """train_ds: the length is a cap, and batches carry padding."""
    found = fields(GPT + "  data: {train_ds: {max_seq_length: 1024}}\n")
    assert (found["batch.packed"], found["batch.sequence_length_is"], found["batch.sequence_length"]) == (False, "cap", 1024)


KEYS = st.sampled_from(
    [
        "model.num_layers",
        "model.hidden_size",
        "model.micro_batch_size",
        "trainer.devices",
        "trainer.precision",
        "model.optim.name",
        "model.activation",
        "training",
        "model.peft.peft_scheme",
        "model.peft.lora_tuning.target_modules",
        "model.ffn_hidden_size",
        "model.data.train_ds.max_seq_length",
        "peft",
    ]
)
VALUES = st.one_of(st.text(max_size=30), st.sampled_from(["${.x}", "${" * 400, "${multiply:2," * 300, "${...................a}", "-1"]))


@given(st.lists(st.tuples(KEYS, VALUES), max_size=10), st.text(max_size=20))
def test_no_words_make_it_raise(pairs: list[tuple[str, str]], name: str) -> None:
    """Any value of any key, any config name."""
    words = ["megatron_gpt_pretraining.py", "--config-name", name, *(f"{key}={value}" for key, value in pairs)]
    reading = NemoReader().read(launch_of(words))
    assert all(str(stated.place) for stated in reading.fields.values())


@pytest.mark.parametrize(
    ("tokenizer", "want"),
    [
        ({"library": "megatron", "type": "GPT2BPETokenizer"}, 50257),
        ({"library": "huggingface", "type": "meta-llama/Llama-2-7b-hf"}, 32000),
        ({"library": "sentencepiece", "model": "/data/tokenizer.model"}, None),
    ],
)
def test_the_tokenizer_gives_the_vocabulary(tokenizer: dict[str, str], want: int | None) -> None:
    """A type of Megatron's and an id, each by its library; of a file only the file can tell."""
    assert fields(f"{GPT}  tokenizer: {tokenizer}\n").get("model.transformer.vocab_size") == want


@pytest.mark.parametrize(("more", "want"), [("", False), ("    train_ds: {file_names: [b]}\n", True), ("  optim: {name: adam}\n", True)])
def test_a_config_that_only_tests_is_not_known(more: str, want: bool) -> None:
    """A set to be tested on, without one to train on and without an optimizer."""
    text = "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel:\n  micro_batch_size: 4\n  data:\n    test_ds: {file_names: [a]}\n"
    assert NemoReader().recognises(a_config(text + more)) is want
