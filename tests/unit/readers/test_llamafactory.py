"""LLaMA-Factory's arguments and what depends on several of them."""

from __future__ import annotations

import pytest
from tests.unit.readers.finetuning import command, config

BASE = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nper_device_train_batch_size: 1\n"


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ("finetuning_type: full\nbf16: true\n", "amp-bf16"),
        ("finetuning_type: full\npure_bf16: true\n", "bf16"),
        ("finetuning_type: full\nfp16: true\n", "amp-fp16"),
        ("finetuning_type: full\n", "fp32"),
        ("finetuning_type: lora\nbf16: true\n", "bf16"),
        ("finetuning_type: full\nbf16: true\nfsdp: full_shard auto_wrap\n", "fsdp-bf16"),
        ("finetuning_type: full\nbf16: true\ndeepspeed: examples/deepspeed/ds_z3_config.json\n", "deepspeed-bf16"),
    ],
)
def test_what_is_trained_is_float32_unless_it_is_pure(more: str, want: str) -> None:
    """Full tuning computes under autocast over float32 weights; adapters leave the base as it is."""
    assert config(BASE + more).get("precision.recipe") == want


@pytest.mark.parametrize(
    ("more", "want"),
    [("", ("full", True)), ("use_reentrant_gc: false\n", ("full", False)), ("disable_gradient_checkpointing: true\n", ("none", None))],
)
def test_checkpointing_is_on_by_default(more: str, want: tuple[str, bool | None]) -> None:
    """And reentrant."""
    found = config(BASE + more)
    assert (found.get("checkpointing.mode"), found.get("checkpointing.reentrant")) == want


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ("stage: dpo\n", ("dpo", "adapter")),
        ("stage: dpo\nfinetuning_type: full\n", ("dpo", "full")),
        ("stage: dpo\nref_model: Qwen/Qwen2.5-7B\n", ("dpo", "full")),
        ("stage: dpo\npref_loss: orpo\n", ("orpo", None)),
        ("stage: dpo\npref_loss: simpo\n", (None, None)),
        ("stage: kto\n", ("kto", "adapter")),
        ("stage: rm\n", ("reward", None)),
        ("stage: pt\n", ("pretrain", None)),
    ],
)
def test_stages_and_their_references(more: str, want: tuple[str | None, str | None]) -> None:
    """Adapters take the base as the reference; orpo and simpo are losses without one, and simpo has no name here."""
    found = config("model_name_or_path: Qwen/Qwen2.5-7B\n" + more)
    assert (found.get("method.name"), found.get("method.reference")) == want
    assert bool(found.unread) == ("simpo" in more)


def test_pretraining_packs_and_neat_packing_is_packing() -> None:
    """Stage pt packs when nothing is said."""
    assert config(BASE.replace("sft", "pt")).get("batch.packed") is True
    assert config(BASE.replace("sft", "pt") + "packing: false\n").get("batch.packed") is False
    assert config(BASE + "neat_packing: true\n").get("batch.packed") is True


def test_a_stage_that_needs_logits_has_no_fused_loss() -> None:
    """Liger's loss that holds no logits is for pretraining and fine-tuning alone."""
    assert config(BASE + "enable_liger_kernel: true\n").get("loss.implementation") == "fused"
    found = config(BASE.replace("sft", "kto") + "enable_liger_kernel: true\n")
    assert found.get("loss.implementation") is None
    assert found.get("framework.fused_kernels") == ["cross_entropy", "rms_norm", "rope", "swiglu"]


@pytest.mark.parametrize(("bits", "method", "want"), [(4, "bnb", "nf4"), (8, "bnb", "int8"), (4, "hqq", None), (3, "hqq", None)])
def test_quantised_bases(bits: int, method: str, want: str | None) -> None:
    """bitsandbytes' two; the others are noted as unread."""
    found = config(BASE + f"quantization_bit: {bits}\nquantization_method: {method}\n")
    assert found.get("lora.base_dtype") == want
    assert bool(found.unread) == (want is None)


def test_overrides_and_flags_behind_a_file_win() -> None:
    """`key=value` as OmegaConf has it."""
    found = command("llamafactory-cli train a.yaml cutoff_len=1024 per_device_train_batch_size=4", {"a.yaml": BASE})
    assert (found.get("batch.sequence_length"), found.get("batch.micro_batch_size")) == (1024, 4)
    assert found.warnings == []


@pytest.mark.parametrize("switch", ["use_badam", "use_galore", "use_apollo", "use_unsloth", "use_llama_pro", "use_mca"])
def test_methods_of_their_own_are_unread(switch: str) -> None:
    """What changes states in a way that no field says."""
    assert switch in config(BASE + f"{switch}: true\n").unread[0]
    assert config(BASE + f"{switch}: false\n").unread == []


def test_frozen_layers_need_the_number_of_layers() -> None:
    """The last layers are trained; without a configuration at hand nobody knows which those are."""
    text = "model_name_or_path: ./m\nfinetuning_type: freeze\nfreeze_trainable_layers: 1\n"
    found = config(text, {"./m/config.json": '{"model_type": "llama", "num_hidden_layers": 4}'})
    assert found.get("frozen") == ["embeddings", "head", "norm", "layers.0-2"]
    assert "freeze" in config(text).unread[0]
