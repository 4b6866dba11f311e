"""Decoder families whose layers are not Llama's: latent attention, sinks, positions as a bias, dense layers first."""

from __future__ import annotations

import pytest
from tests.bench.accuracy import Json, number, rows
from tests.unit.memory.builders import a_job, a_plan, a_transformer, job_of

from peakgate.memory.catalog.models import MODELS
from peakgate.memory.change import Value
from peakgate.memory.families import FAMILIES
from peakgate.memory.hf_config import read
from peakgate.memory.job import Lora, Model, MultiHeadLatentAttention, Transformer
from peakgate.memory.model import describe
from peakgate.memory.predict import predict
from peakgate.memory.stretches import stretches

MORE = rows("traced_more")

LATENT = MultiHeadLatentAttention(q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16)


def deepseek(block: str = "deepseek_v3", layers: int = 6, dense: int = 2, mla: MultiHeadLatentAttention = LATENT) -> Transformer:
    """A small DeepSeek: two dense layers, then four experts of which a token visits two, and a shared one."""
    return Transformer(
        block=block, layers=layers, hidden_size=64, heads=4, ffn_hidden_size=160, vocab_size=250, experts=4, experts_per_token=2,
        shared_experts=1, expert_ffn_hidden_size=48, dense_layers=dense, mla=mla,
    )  # fmt: skip


@pytest.mark.parametrize("row", MORE, ids=[f"{index}-{row['architecture']}" for index, row in enumerate(MORE)])
def test_a_config_gives_its_parameters(row: Json) -> None:
    """A config.json is read directly: its parameters are those of the traced model to the last one (transformers modeling_*.py)."""
    assert predict(job_of(row["job"])).parameters == number(row, "parameters")


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_catalogue_model_has_its_published_parameters(name: str) -> None:
    """Every preset whose family is modelled, to the last one; DeepSeek-V3's files also count its correction buffers."""
    model = MODELS[name]
    answer = predict(a_job(model=Model(preset=name)))
    if not any("has no kernels of its own" in reason for reason in answer.undecided):
        t = model.transformer
        corrections = (t.experts or 0) * ((t.layers or 0) - (t.dense_layers or 0)) if t.block == "deepseek_v3" else 0
        assert answer.parameters + corrections == model.published_parameters


def test_every_family_of_the_rows_is_there() -> None:
    """At least five rows a family, with and without a checkpoint."""
    for name in {str(row["architecture"]) for row in MORE}:
        modes = [job_of(row["job"]).checkpointing.mode for row in MORE if row["architecture"] == name]
        assert name in FAMILIES
        assert len(modes) >= 5
        assert {"none", "full"} <= set(modes)


def test_dense_layers_lead() -> None:
    """first_k_dense_replace (transformers models/deepseek_v3/modeling_deepseek_v3.py): the first layers have no experts."""
    found = stretches(a_plan(model=deepseek()), 6)
    assert [(each.times, each.kinds) for each in found] == [(1, ("dense",)), (1, ("dense",)), (1, ("every",)), (3, ("every",))]


def test_a_later_stage_has_no_dense_layers() -> None:
    """They are the model's first layers, so a later stage of a pipeline has none."""
    found = stretches(a_plan(model=deepseek()), 3, start=3)
    assert {kind for each in found for kind in each.kinds} == {"every"}


def test_walking_each_dense_layer_changes_nothing() -> None:
    """One layer walked for all equals every layer walked: the replay's allocated bytes are the walk's."""
    job = a_job({"checkpointing.mode": "none"}, model=deepseek())
    assert predict(job, exact=True).allocated_bytes == predict(job).allocated_bytes


def test_a_model_of_dense_layers_alone_has_no_experts() -> None:
    """As many dense layers as layers: a saved layer is then a dense one."""
    sparse, dense = (predict(a_job(model=deepseek(dense=count))) for count in (0, 6))
    assert dense.saved_activation_bytes_per_layer < sparse.saved_activation_bytes_per_layer
    assert dense.parameters < sparse.parameters


def test_ranks_that_are_not_stated_are_the_configuration_class_s() -> None:
    """configuration_deepseek_v3.py: ranks of 1536 and 512, heads of 128 and 64; a rank of null is none at all."""
    wide = describe(Model(transformer=deepseek(mla=MultiHeadLatentAttention()))).architecture
    assert wide is not None
    assert (wide.dims["qr"], wide.dims["latent"], wide.dims["d"]) == (1536, 576, 192)
    config = {"model_type": "deepseek_v2", "kv_lora_rank": 512}
    assert read({**config, "q_lora_rank": None})[0].mla == MultiHeadLatentAttention(q_lora_rank=0, kv_lora_rank=512)
    assert read(config)[0].mla == MultiHeadLatentAttention(kv_lora_rank=512)


@pytest.mark.parametrize(("block", "stated"), [("gpt_oss", "sdpa"), ("bloom", "sdpa"), ("mpt", "flash")])
def test_an_attention_that_a_class_lacks_is_eager(block: str, stated: str) -> None:
    """transformers modeling_utils.py: without _supports_sdpa or _supports_flash_attn the model runs eager; the answer says so."""
    other, eager = (predict(a_job({"attention.implementation": each}, model=a_transformer(block))) for each in (stated, "eager"))
    assert other.allocated_bytes == eager.allocated_bytes
    assert any(f"has no {stated} attention for {block}" in assumption for assumption in other.assumptions)


def test_a_flash_kernel_keeps_no_scores_of_sinks() -> None:
    """gpt_oss hands its sinks to the flash kernel (integrations/flash_attention.py: s_aux); eager keeps the scores."""
    flash, eager = (
        predict(a_job({"attention.implementation": each, "batch.sequence_length": 512}, model=a_transformer("gpt_oss")))
        for each in ("flash", "eager")
    )
    assert flash.parameters == eager.parameters
    assert flash.saved_activation_bytes_per_layer < eager.saved_activation_bytes_per_layer / 2


@pytest.mark.parametrize("attention", ["eager", "sdpa", "flash"])
@pytest.mark.parametrize("recipe", ["bf16", "amp-bf16", "fp32"])
@pytest.mark.parametrize("packed", [True, False])
def test_latent_attention_is_counted_in_every_format(attention: str, recipe: str, packed: bool) -> None:
    """Values narrower than keys go through every core; a mask and autocast change which."""
    changes: dict[str, Value] = {"attention.implementation": attention, "precision.recipe": recipe, "batch.packed": packed}
    for block in ("deepseek_v2", "deepseek_v3"):
        assert predict(a_job(changes, model=deepseek(block))).saved_activation_bytes_per_layer > 0


def test_adapters_go_on_every_matrix_of_latent_attention() -> None:
    """peft's all-linear: the two matrices of queries, the two of keys and values, the output, and the shared and dense parts."""
    lora = Lora(rank=4, targets=("all-linear",))
    t = deepseek(layers=2, dense=1)
    a, rope, nope, value = 4, 8, 16, 16
    latent = [(64, 24), (24, a * (nope + rope)), (64, 16 + rope), (16, a * (nope + value)), (a * value, 64)]
    mlps = [(64, width) for width in (160, 160, 160, 48, 48, 48)]
    want = 4 * (2 * sum(x + y for x, y in latent) + sum(x + y for x, y in mlps))
    assert predict(a_job(model=t, lora=lora)).trainable_parameters == want


@pytest.mark.parametrize("block", ["deepseek_v3", "gpt_oss", "olmo3", "smollm3", "bloom", "mpt", "phi", "glm", "gptj"])
def test_more_batch_never_needs_less(block: str) -> None:
    """The law holds on every new family."""
    model = deepseek() if block == "deepseek_v3" else a_transformer(block)
    sizes = [predict(a_job({"batch.micro_batch_size": each}, model=model)).allocated_bytes for each in (1, 2, 4, 8)]
    assert sizes == sorted(sizes)
