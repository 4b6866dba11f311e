"""The model catalogue: dimensions that give the published parameter counts exactly, and names as people write them.

The formulas are written here, apart from the memory model, from the modules of transformers' modeling files. h hidden size,
q width of all query heads, k width of all key heads, f inner width, L layers, V vocabulary, E experts.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from peakgate.memory.catalog.models import MODELS, ModelSpec, find_model
from peakgate.memory.hf_config import Extras
from peakgate.memory.job import MultiHeadLatentAttention, Transformer
from peakgate.memory.prediction import JobError

NONE = Extras()


def whole(number: int | None) -> int:
    """A dimension that every catalogue row states."""
    assert number is not None
    return number


class Sizes:
    """The symbols of the formulas."""

    def __init__(self, model: Transformer, extras: Extras = NONE) -> None:
        self.extras, self.own = extras, dict(extras.encoder.sizes)
        self.L, self.h, self.a = whole(model.layers), whole(model.hidden_size), whole(model.heads)
        self.d = model.head_dim or self.h // self.a
        self.q, self.k = self.a * self.d, (model.kv_heads or self.a) * self.d
        self.f, self.V, self.P = whole(model.ffn_hidden_size), whole(model.vocab_size), model.max_positions or 0
        self.E, self.e = model.experts or 0, model.expert_ffn_hidden_size or self.f
        self.shared, self.dense, self.encoder = model.shared_experts or 0, model.dense_layers or 0, model.encoder_layers or 0
        self.tables = 1 if model.tied_embeddings else 2
        self.mla = model.mla or MultiHeadLatentAttention()


def projections(s: Sizes) -> int:
    """The four matrices of an attention without biases."""
    return 2 * s.h * s.q + 2 * s.h * s.k


def gated(s: Sizes, *, norms: int = 2, attention: int = 0) -> int:
    """A decoder of RMSNorms and gated feed-forward parts; `attention` counts biases and norms inside the attention."""
    return s.tables * s.V * s.h + s.L * (projections(s) + attention + 3 * s.h * s.f + norms * s.h) + s.h


def with_qkv_biases(s: Sizes) -> int:
    """Qwen 2, GLM-4, Seed-OSS: biases on query, key and value."""
    return gated(s, attention=s.q + 2 * s.k)


def with_head_norms(s: Sizes) -> int:
    """Qwen 3: a norm over each query and key head, shared by the heads."""
    return gated(s, attention=2 * s.d)


def with_wide_norms(s: Sizes) -> int:
    """OLMo 2 and 3: norms over all query and over all key heads."""
    return gated(s, attention=s.q + s.k)


def without_norms(s: Sizes) -> int:
    """OLMo: its LayerNorms have no weights."""
    return gated(s, norms=0) - s.h


def gemma_2(s: Sizes) -> int:
    """Norms before and after both parts."""
    return gated(s, norms=4)


def gemma_3(s: Sizes) -> int:
    """Gemma 2 with head norms."""
    return gated(s, norms=4, attention=2 * s.d)


def biased_layer(s: Sizes) -> int:
    """GPT-2's layer: two LayerNorms, four square matrices, two wide ones, all with biases."""
    return 4 * (s.h * s.h + s.h) + 2 * s.h * s.f + s.f + s.h + 4 * s.h


def gpt_2(s: Sizes) -> int:
    """A learned table of positions, tied head, final LayerNorm."""
    return s.V * s.h + s.P * s.h + s.L * biased_layer(s) + 2 * s.h


def opt(s: Sizes) -> int:
    """GPT-2's parts; the table of positions starts at two."""
    return gpt_2(s) + 2 * s.h


def gpt_neox(s: Sizes) -> int:
    """Rotary positions and a head of its own."""
    return 2 * s.V * s.h + s.L * biased_layer(s) + 2 * s.h


def bloom(s: Sizes) -> int:
    """A LayerNorm behind the embedding, no table of positions."""
    return s.V * s.h + 2 * s.h + s.L * biased_layer(s) + 2 * s.h


def gpt_neo(s: Sizes) -> int:
    """GPT-2 without biases on query, key and value."""
    return gpt_2(s) - s.L * 3 * s.h


def gpt_j(s: Sizes) -> int:
    """One LayerNorm a layer, no attention biases, a head with a bias."""
    return 2 * s.V * s.h + s.V + s.L * (projections(s) + 2 * s.h * s.f + s.f + s.h + 2 * s.h) + 2 * s.h


def phi(s: Sizes) -> int:
    """One LayerNorm a layer, biases everywhere, a head with a bias."""
    return 2 * s.V * s.h + s.V + s.L * (4 * (s.h * s.h + s.h) + 2 * s.h * s.f + s.f + s.h + 2 * s.h) + 2 * s.h


def falcon(s: Sizes) -> int:
    """No biases but in the LayerNorms: one a layer with one key head, two with groups of them."""
    norms = 1 if s.k == s.d else 2
    return s.tables * s.V * s.h + s.L * (projections(s) + 2 * s.h * s.f + norms * 2 * s.h) + 2 * s.h


def mpt(s: Sizes) -> int:
    """No biases at all."""
    return s.V * s.h + s.L * (projections(s) + 2 * s.h * s.f + 2 * s.h) + s.h


def starcoder_2(s: Sizes) -> int:
    """Grouped keys with biases everywhere, LayerNorms."""
    biases = s.q + 2 * s.k + s.h + s.f + s.h
    return s.tables * s.V * s.h + s.L * (projections(s) + 2 * s.h * s.f + biases + 4 * s.h) + 2 * s.h


def experts(s: Sizes, attention: int = 0) -> int:
    """Mixtral: a router and E gated experts in each layer."""
    return 2 * s.V * s.h + s.L * (projections(s) + attention + 2 * s.h + s.h * s.E + s.E * 3 * s.h * s.e) + s.h


def qwen_3_experts(s: Sizes) -> int:
    """Mixtral's layer with head norms."""
    return experts(s, attention=2 * s.d)


def olmoe(s: Sizes) -> int:
    """Mixtral's layer with wide norms."""
    return experts(s, attention=s.q + s.k)


def gpt_oss(s: Sizes) -> int:
    """Biases everywhere, one sink a head."""
    attention = projections(s) + s.q + 2 * s.k + s.h + s.a
    expert = 3 * s.h * s.e + 2 * s.e + s.h
    return 2 * s.V * s.h + s.L * (attention + 2 * s.h + s.h * s.E + s.E + s.E * expert) + s.h


def latent_attention(s: Sizes) -> int:
    """Multi-head latent attention with its two norms; without a query rank the query is one matrix."""
    rank, kv_rank, rope = whole(s.mla.q_lora_rank), whole(s.mla.kv_lora_rank), whole(s.mla.qk_rope_head_dim)
    nope, value = whole(s.mla.qk_nope_head_dim), whole(s.mla.v_head_dim)
    wide = s.a * (nope + rope)
    query = s.h * rank + rank + rank * wide if rank else s.h * wide
    return query + s.h * (kv_rank + rope) + kv_rank + kv_rank * s.a * (nope + value) + s.a * value * s.h


def qwen_2_experts(s: Sizes) -> int:
    """Biases on query, key and value; a shared expert of a width of its own, behind a gate of one column."""
    shared = 3 * s.h * s.extras.shared_width + s.h
    return experts(s, attention=s.q + 2 * s.k + shared)


def deepseek_1(s: Sizes) -> int:
    """Llama's attention; dense layers first, then shared and routed experts."""
    sparse = s.h * s.E + (s.E + s.shared) * 3 * s.h * s.e
    parts = s.dense * 3 * s.h * s.f + (s.L - s.dense) * sparse
    return 2 * s.V * s.h + s.L * (projections(s) + 2 * s.h) + parts + s.h


def deepseek(s: Sizes, router_bias: int = 0) -> int:
    """Dense layers first, then shared and routed experts."""
    sparse = s.h * s.E + router_bias + (s.E + s.shared) * 3 * s.h * s.e
    parts = s.dense * 3 * s.h * s.f + (s.L - s.dense) * sparse
    return 2 * s.V * s.h + s.L * (latent_attention(s) + 2 * s.h) + parts + s.h


def deepseek_3(s: Sizes) -> int:
    """A correction bias a routed expert; without the multi-token module."""
    return deepseek(s, router_bias=s.E)


def bert(s: Sizes, segments: int = 2) -> int:
    """Embeddings of words, positions and segments; a masked-word head with a bias a word, and no pooler."""
    embeddings = (s.V + s.P + segments + 2) * s.h
    head = s.h * s.h + s.h + 2 * s.h + s.V
    return embeddings + s.L * biased_layer(s) + head


def roberta(s: Sizes) -> int:
    """BERT with one segment."""
    return bert(s, segments=1)


def t5(s: Sizes) -> int:
    """No biases; 32 buckets of relative positions in the first layer of either side; from T5 1.1 on a gate beside the inner matrix."""
    gated_part = dict(s.extras.encoder.roles).get("mlp") == "mlp_t5_gated"
    wide = (3 if gated_part else 2) * s.h * s.f
    encoder = projections(s) + wide + 2 * s.h
    decoder = 2 * projections(s) + wide + 3 * s.h
    return s.tables * s.V * s.h + s.encoder * encoder + s.L * decoder + 2 * 32 * s.a + 2 * s.h


def bart(s: Sizes) -> int:
    """A shared table of words, tables of positions that start at two, LayerNorms behind every part and both embeddings."""
    norm, attention = 2 * s.h, 4 * (s.h * s.h + s.h)
    decoder = biased_layer(s) + attention + norm
    return s.V * s.h + 2 * (s.P + 2) * s.h + 2 * norm + s.encoder * biased_layer(s) + s.L * decoder


def whisper(s: Sizes) -> int:
    """Two convolutions of width 3 over the mel bands; positions of the encoder are no parameters but stored; keys have no bias."""
    norm, attention = 2 * s.h, 4 * s.h * s.h + 3 * s.h
    sound = 3 * s.own["mel"] * s.h + s.h + 3 * s.h * s.h + s.h + s.own["sources"] * s.h
    encoder = biased_layer(s) - s.h
    decoder = encoder + attention + norm
    return sound + s.encoder * encoder + norm + (s.V + s.P) * s.h + s.L * decoder + norm


def tower(layers: int, h: int, f: int) -> int:
    """The layers of one side of CLIP, which are GPT-2's, without embeddings and outer norms."""
    return layers * (4 * (h * h + h) + 2 * h * f + f + h + 4 * h)


def clip(s: Sizes) -> int:
    """Words and pictures, each with a projection without a bias; norms before and after the pictures' tower; one temperature."""
    h, patch = s.own["vision_h"], s.own["patch"]
    pictures = 3 * patch * patch * h + h + (1 + (s.own["image"] // patch) ** 2) * h + 2 * 2 * h + tower(s.encoder, h, s.own["vision_f"])
    words = (s.V + s.P) * s.h + 2 * s.h + tower(s.L, s.h, s.f)
    return pictures + words + (h + s.h) * s.own["projection"] + 1


def stablelm(s: Sizes) -> int:
    """Llama's matrices with LayerNorms; biases on query, key and value where the config says so."""
    biases = s.q + 2 * s.k if s.extras.attention_bias else 0
    return gated(s, norms=4, attention=biases) + s.h


def apertus(s: Sizes) -> int:
    """No gate, head norms, and two trained numbers in each activation."""
    return 2 * s.V * s.h + s.L * (projections(s) + 2 * s.d + 2 * s.h * s.f + 2 + 2 * s.h) + s.h


def vit(s: Sizes) -> int:
    """Patches in three colours, a class token, a classifier with a bias a class."""
    patch, classes = s.own.get("patch", 16), s.own.get("labels", s.V)
    positions = s.P or 1 + (s.own["image"] // patch) ** 2
    embeddings = 3 * patch * patch * s.h + s.h + s.h + positions * s.h
    return embeddings + s.L * biased_layer(s) + 2 * s.h + s.h * classes + classes


FORMULAS: dict[str, Callable[[Sizes], int]] = {
    **dict.fromkeys(("llama", "mistral", "phi3", "gemma", "smollm3", "granite", "internlm2", "baichuan"), gated),
    **dict.fromkeys(("qwen2", "glm", "seed_oss"), with_qkv_biases),
    **dict.fromkeys(("olmo2", "olmo3"), with_wide_norms),
    **dict.fromkeys(("roberta", "xlm-roberta"), roberta),
    "qwen3": with_head_norms, "gemma2": gemma_2, "gemma3_text": gemma_3, "gpt2": gpt_2, "opt": opt, "gpt_neox": gpt_neox,
    "bloom": bloom, "gpt_neo": gpt_neo, "gptj": gpt_j, "phi": phi, "falcon": falcon, "mpt": mpt, "starcoder2": starcoder_2,
    "mixtral": experts, "qwen3_moe": qwen_3_experts, "olmoe": olmoe, "gpt_oss": gpt_oss, "deepseek_v2": deepseek,
    "deepseek_v3": deepseek_3, "bert": bert, "t5": t5, "mt5": t5, "vit": vit, "bart": bart, "whisper": whisper, "clip": clip,
    "stablelm": stablelm, "qwen2_moe": qwen_2_experts, "deepseek": deepseek_1, "apertus": apertus, "olmo": without_norms,
}  # fmt: skip


@pytest.mark.parametrize("spec", MODELS.values(), ids=lambda spec: spec.name)
def test_the_dimensions_give_the_published_count(spec: ModelSpec) -> None:
    """The parameters computed from a row's dimensions equal the published count, to the last one."""
    assert FORMULAS[spec.transformer.block](Sizes(spec.transformer, spec.extras)) == spec.published_parameters


def test_there_are_many_models() -> None:
    """The catalogue holds at least the two hundred models it promises, and every formula is used."""
    assert len(MODELS) >= 200
    assert {spec.transformer.block for spec in MODELS.values()} == set(FORMULAS)


def test_every_row_is_consistent() -> None:
    """Heads are shared evenly, every model has an id and a source, and no id means two models."""
    ids = [alias.lower() for spec in MODELS.values() for alias in spec.aliases]
    assert len(ids) == len(set(ids))
    for name, spec in MODELS.items():
        assert spec.name == name == name.lower()
        assert whole(spec.transformer.heads) % (spec.transformer.kv_heads or 1) == 0
        assert spec.aliases[0] in spec.source


def test_a_mixture_normalises_as_its_config_says() -> None:
    """OLMoE and Qwen 1.5's mixture leave the weights of the chosen experts as they are (norm_topk_prob: false), Qwen 3's does not."""
    found = {name: MODELS[name].extras.normalises_top_k for name in ("olmoe-1b-7b", "qwen1.5-moe-a2.7b", "qwen3-30b-a3b")}
    assert found == {"olmoe-1b-7b": False, "qwen1.5-moe-a2.7b": False, "qwen3-30b-a3b": True}


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("gpt2", (0.1, 0.1)),
        ("opt-1.3b", (0.0, 0.1)),
        ("bert-base", (0.1, 0.1)),
        ("t5-small", (0.1, 0.1)),
        ("bart-large", (0.0, 0.1)),
        ("llama-3.1-8b", (0.0, 0.0)),
    ],
)
def test_a_model_drops_out_as_its_config_says(name: str, want: tuple[float, float]) -> None:
    """(attention, hidden) of the published config.json: models of before 2022 drop out, and keep the masks for the backward pass."""
    extras = MODELS[name].extras
    assert (extras.attention_dropout, extras.hidden_dropout) == want


@pytest.mark.parametrize(("name", "want_in_the_files"), [("bert-base-cased", 108_932_934), ("bert-base-multi", 178_566_653)])
def test_bert_in_its_files(name: str, want_in_the_files: int) -> None:
    """The safetensors files also hold the pooler and the two classes of the next sentence (BertForPreTraining)."""
    h = whole(MODELS[name].transformer.hidden_size)
    assert MODELS[name].published_parameters + (h * h + h) + (2 * h + 2) == want_in_the_files


def test_a_count_says_where_it_comes_from() -> None:
    """A count that was not read from the files says so beside the id."""
    assert MODELS["llama-3.1-8b"].source == "config.json and safetensors index of meta-llama/Llama-3.1-8B"
    assert "as commonly cited" in MODELS["flan-t5-xl"].source
    assert "tensor parallel ranks" in MODELS["stablelm-alpha-3b"].source


@pytest.mark.parametrize(
    ("name", "ranks", "want_on_the_card"), [("stablelm-alpha-3b", 4, 3_638_525_952), ("stablelm-alpha-7b", 2, 7_869_358_080)]
)
def test_stablelm_alpha_on_its_card(name: str, ranks: int, want_on_the_card: int) -> None:
    """Stability-AI/StableLM, README: the count of all ranks, each with norms and row-parallel biases of its own."""
    s = Sizes(MODELS[name].transformer)
    assert MODELS[name].published_parameters + (ranks - 1) * (6 * s.h * s.L + 2 * s.h) == want_on_the_card


@pytest.mark.parametrize(
    ("written", "want_name"),
    [
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("META-LLAMA/llama-3.1-8b-instruct", "llama-3.1-8b"),
        (" Meta-Llama-3-8B ", "llama-3-8b"),
        ("gpt2", "gpt2"),
        ("openai-community/gpt2-xl", "gpt2-xl"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
    ],
)
def test_a_model_is_found_by_name_and_by_id(written: str, want_name: str) -> None:
    """Catalogue names, Hugging Face ids and the last part of an id work, in any case."""
    assert find_model(written).name == want_name


@pytest.mark.parametrize("spec", MODELS.values(), ids=lambda spec: spec.name)
def test_every_id_finds_its_own_model(spec: ModelSpec) -> None:
    """No id is shadowed by another name."""
    assert [find_model(alias).name for alias in spec.aliases] == [spec.name] * len(spec.aliases)


@pytest.mark.parametrize(
    ("written", "want_nearest"),
    [("llama-3.1-9b", "llama-3.1-8b"), ("meta-llama/Llama-3.1-8b-Base", "meta-llama/Llama-3.1-8B"), ("gpt-2", "gpt2")],
)
def test_an_unknown_name_is_refused_with_the_nearest(written: str, want_nearest: str) -> None:
    """An unknown name is an error that names the field, and what may have been meant in the same kind of name."""
    with pytest.raises(JobError) as caught:
        find_model(written)
    (error,) = caught.value.fields
    assert caught.value.reason == "MODEL_UNKNOWN"
    assert error.field == "model.preset"
    assert want_nearest in error.description


@pytest.mark.parametrize("written", ["", "zzzz", "/", "🤖"])
def test_a_name_that_is_like_nothing_is_refused_with_a_remedy(written: str) -> None:
    """Without a near name the error tells where the names are, and what else may be stated."""
    with pytest.raises(JobError, match=r"catalog models.*model\.hf_config"):
        find_model(written)
