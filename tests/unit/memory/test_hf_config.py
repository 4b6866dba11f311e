"""Real shapes of config.json: the names of the same thing differ by family."""

from __future__ import annotations

import math

import pytest
from tests.unit.memory.builders import a_job

from peakgate.memory.hf_config import Extras, key_of, read, shares
from peakgate.memory.job import Model, Transformer
from peakgate.memory.model import describe
from peakgate.memory.predict import predict

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "rope_theta": 500000.0,
}
QWEN2: dict[str, object] = {
    "model_type": "qwen2",
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "sliding_window": 32768,
    "use_sliding_window": False,
    "tie_word_embeddings": True,
}
GPT2: dict[str, object] = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_positions": 1024,
    "n_inner": None,
    "vocab_size": 50257,
    "attn_pdrop": 0.1,
    "resid_pdrop": 0.2,
}
FALCON_7B: dict[str, object] = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "num_kv_heads": 71,
    "multi_query": True,
    "new_decoder_architecture": False,
    "vocab_size": 65024,
    "hidden_dropout": 0.0,
}
FALCON_40B: dict[str, object] = {
    "model_type": "falcon",
    "hidden_size": 8192,
    "num_hidden_layers": 60,
    "num_attention_heads": 128,
    "num_kv_heads": 8,
    "multi_query": True,
    "new_decoder_architecture": True,
    "vocab_size": 65024,
}
GEMMA3: dict[str, object] = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 1024,
        "vocab_size": 262208,
        "layer_types": [*(["sliding_attention"] * 5), "full_attention"] * 5 + ["sliding_attention"] * 4,
    },
    "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27},
}


def test_llama() -> None:
    """Grouped queries and no learned positions, however long the context may be."""
    want = Transformer(
        block="llama",
        layers=32,
        hidden_size=4096,
        heads=32,
        kv_heads=8,
        ffn_hidden_size=14336,
        vocab_size=128256,
        tied_embeddings=False,
        max_positions=0,
    )
    assert read(LLAMA) == (want, Extras())


def test_a_window_that_is_switched_off_is_none() -> None:
    """Qwen2 writes a window and use_sliding_window = false."""
    assert read(QWEN2)[0].sliding_window == 0
    assert read({**QWEN2, "use_sliding_window": True})[0].sliding_window == 32768


def test_gpt2_has_names_of_its_own() -> None:
    """n_embd, n_layer, n_head; an inner width of null means four times hidden; dropouts come with the config."""
    t, extras = read(GPT2)
    assert (t.hidden_size, t.layers, t.heads, t.ffn_hidden_size, t.max_positions) == (768, 12, 12, None, 1024)
    assert (extras.attention_dropout, extras.hidden_dropout) == (0.1, 0.2)
    architecture = describe(Model(hf_config=GPT2)).architecture
    assert architecture is not None
    assert architecture.dims["f"] == 4 * 768


def test_the_old_falcon_has_one_key_value_head() -> None:
    """multi_query wins over num_kv_heads, which older configs set to all heads."""
    assert read(FALCON_7B)[0].kv_heads == 1


def test_the_new_falcon_has_groups() -> None:
    """new_decoder_architecture: num_kv_heads counts, and multi_query does not."""
    assert read(FALCON_40B)[0].kv_heads == 8
    assert read(FALCON_40B)[1].new_decoder


@pytest.mark.parametrize(("new_decoder", "want"), [(True, "layer_falcon"), (False, "layer_falcon_mqa")])
def test_one_key_value_head_does_not_make_an_old_falcon(new_decoder: bool, want: str) -> None:
    """The decoder is what the config says, whatever its number of heads."""
    config = {**FALCON_40B, "num_kv_heads": 1, "new_decoder_architecture": new_decoder}
    architecture = describe(Model(hf_config=config)).architecture
    assert architecture is not None
    assert architecture.roles["layer"] == want


def test_a_multimodal_config_is_read_at_its_text() -> None:
    """Gemma 3: sizes of text_config, five local layers to a global one."""
    t, extras = read(GEMMA3)
    assert (t.block, t.layers, t.head_dim, t.sliding_window) == ("gemma3_text", 34, 256, 1024)
    assert extras.pattern == 6
    assert predict(a_job(model=Model(hf_config=GEMMA3))).undecided == ()


def test_the_pattern_of_layers_is_the_configs_own() -> None:
    """Every second layer global."""
    text = {**GEMMA3["text_config"], "layer_types": ["sliding_attention", "full_attention"] * 17}  # type: ignore[dict-item]  # the values of the example are of every type
    architecture = describe(Model(hf_config={**GEMMA3, "text_config": text})).architecture
    assert architecture is not None
    assert architecture.pattern == ("local", "global")


@pytest.mark.parametrize(
    "config", [{"partial_rotary_factor": 0.5}, {"rotary_pct": 0.5}, {"rope_parameters": {"partial_rotary_factor": 0.5}}]
)
def test_the_rotated_share_of_a_head_is_read_where_it_stands(config: dict[str, object]) -> None:
    """Three places in three ages of the library."""
    assert read({"model_type": "gpt_neox", **config})[1].rotary_share == 0.5


@pytest.mark.parametrize("value", [None, "32", True, 1.5, math.nan, math.inf, [32], {}])
def test_what_is_no_whole_number_is_not_a_size(value: object) -> None:
    """It is as if it were not there: the answer is then undecided, and never a crash."""
    assert read({**LLAMA, "num_hidden_layers": value})[0].layers is None
    answer = predict(a_job(model=Model(hf_config={**LLAMA, "num_hidden_layers": value})))
    assert "does not say layers" in " ".join(answer.undecided)


def test_a_whole_number_may_come_as_a_double() -> None:
    """A Struct on the wire has doubles only."""
    assert read({**LLAMA, "num_hidden_layers": 32.0})[0].layers == 32


def test_a_message_uses_the_configs_own_name() -> None:
    """`n_head` of GPT-2, text_config of a multimodal model, and our own name for what is not there."""
    assert key_of(GPT2, "heads") == "n_head"
    assert key_of(GEMMA3, "heads") == "text_config.num_attention_heads"
    assert key_of({}, "heads") == "heads"


def test_shares_carry_their_path() -> None:
    """So that a bad one can be named."""
    config = {"attention_dropout": 0.1, "rope_parameters": {"partial_rotary_factor": 0.25}, "hidden_dropout": None}
    assert dict(shares(config)) == {"attention_dropout": 0.1, "rope_parameters.partial_rotary_factor": 0.25}
    assert dict(shares({"text_config": {"attn_pdrop": 1}})) == {"text_config.attn_pdrop": 1.0}


def test_a_preset_and_its_config_are_the_same_model() -> None:
    """The catalogue's row and the published config.json give one answer."""
    preset, config = (predict(a_job(model=model)) for model in (Model(preset="llama-3.1-8b"), Model(hf_config=LLAMA)))
    assert preset == config
