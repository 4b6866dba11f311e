"""LLaMA-Factory's arguments and what depends on several of them."""

from __future__ import annotations

import pytest
from tests.unit.readers.finetuning import command, config

from peakgate.readers.files import GivenFiles
from peakgate.readers.llamafactory import LlamaFactory
from peakgate.readers.shell.script import launches_of_command

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
    assert found.get("loss.implementation") == "full"
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


SECOND = "model: Qwen/Qwen3-4B\ntrain_dataset: data.yaml\nmicro_batch_size: 2\n"


@pytest.mark.parametrize(
    ("more", "path", "want"),
    [
        ("", "precision.recipe", "fp32"),
        ("dist_config:\n  name: fsdp2\n", "precision.recipe", "fsdp-bf16"),
        ("dist_config:\n  name: fsdp2\nbf16: false\n", "precision.recipe", "fp32"),
        ("peft_config:\n  name: lora\n", "precision.recipe", "bf16"),
        ("peft_config:\n  name: lora\n", "lora.rank", 8),
        ("peft_config:\n  name: lora\n  use_dora: true\n", "lora.method", "dora"),
        ("quant_config:\n  name: auto\n  quantization_bit: 8\n", "lora.base_dtype", "int8"),
        ("quant_config:\n  name: bnb\n  quantization_type: fp4\n", "lora.base_dtype", "int4"),
        ("quant_config:\n  name: auto\n", "lora.base_dtype", None),
        ("dist_config:\n  name: deepspeed\n  config_file: ds_z3_config.json\n", "parallelism.sharding", "zero3"),
        ("dist_config:\n  name: fsdp2\n  offload_params: true\n", "offload.optimizer", "cpu"),
        ("pref_beta: 0.2\n", "method.reference", "full"),
        ("pref_loss: orpo\n", "method.name", "orpo"),
    ],
)
def test_configs_of_the_second_generation(more: str, path: str, want: object) -> None:
    """Sections in place of flat names; full tuning is float32 and has no autocast."""
    found = config(SECOND + more)
    assert found.format == "llamafactory"
    assert found.get(path) == want
    assert found.unread == []


@pytest.mark.parametrize(
    "more",
    [
        "batching_strategy: dynamic_batching\n",
        "dist_config:\n  name: fsdpturbo\n",
        "peft_config:\n  name: freeze\n",
        "optim_config:\n  name: mine\n",
        "kernel_config:\n  name: auto, flash-linear-attention\n",
        "quant_config:\n  name: gptq\n  quantization_bit: 4\n",
        "pref_loss: simpo\n",
    ],
)
def test_what_the_second_generation_has_and_no_field_says(more: str) -> None:
    """It makes the answer undecided."""
    assert len(config(SECOND + more).unread) == 1


@pytest.mark.parametrize(
    ("start", "want"),
    [
        ("NPROC_PER_NODE=4", True),
        ("FORCE_TORCHRUN=1", True),
        ("NPROC_PER_NODE=4 OPTIM_TORCH=0", None),
        ("NPROC_PER_NODE=1", None),
    ],
)
def test_the_commands_own_torchrun_sets_the_allocator(start: str, want: bool | None) -> None:
    """Expandable segments on several GPUs, unless they are switched off (launcher.py)."""
    found = command(f"{start} llamafactory-cli train a.yaml", {"a.yaml": BASE})
    assert found.get("framework.expandable_segments") == want


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("python proj/src/train.py a.yaml", True),
        ("python proj/src/train.py --stage sft --model_name_or_path Qwen/Qwen3-4B", True),
        ("python LLaMA-Factory/src/train.py gone.yaml", True),
        ("python fsdp/src/train.py --hidden_width 4096 --train_batch_size 1", False),
        ("python proj/src/train.py gone.yaml", False),
    ],
)
def test_a_script_that_many_projects_have(words: str, want: bool) -> None:
    """Its arguments or its folder tell whose it is."""
    given = {"a.yaml": BASE}
    launch = next(launches_of_command(words, GivenFiles(given)))
    assert LlamaFactory().recognises(launch) is want


def test_a_length_that_cannot_be_read_is_no_default() -> None:
    """What is stated and is no number stays open."""
    found = config("model_name_or_path: m/m\nstage: sft\nfinetuning_type: full\ntemplate: qwen\ndataset: d\ncutoff_len: 4k\n")
    assert found.get("batch.sequence_length") is None
    assert any("'4k' cannot be read" in each for each in found.warnings)
