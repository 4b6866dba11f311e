"""Axolotl's keys and what depends on several of them."""

from __future__ import annotations

import pytest
from tests.unit.readers.finetuning import command, config

BASE = "base_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 2\nsequence_len: 4096\n"
FSDP = "fsdp: [full_shard, auto_wrap]\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ("", "bf16"),
        ("bf16: auto\n", "bf16"),
        ("bf16: full\n", "bf16"),
        ("bf16: false\n", "fp32"),
        ("bf16: false\nfp16: true\n", "amp-fp16"),
        ("bf16: auto\nfp16: true\n", "amp-fp16"),
        ("bf16: true\n" + FSDP, "fsdp-bf16"),
        ("bf16: true\nfsdp_version: 2\n" + FSDP, "bf16"),
        ("bf16: true\ndeepspeed: deepspeed_configs/zero1.json\n", "deepspeed-bf16"),
        ("bf16: true\nadapter: lora\n", "bf16"),
    ],
)
def test_number_formats_follow_switches_and_sharding(more: str, want: str) -> None:
    """Weights are 16 bits but where FSDP 1 makes them float32; `auto` is what the card can."""
    assert config(BASE + more).get("precision.recipe") == want


@pytest.mark.parametrize(
    ("more", "want_packed", "want_length"),
    [
        ("", False, "cap"),
        ("sample_packing: true\n", True, "exact"),
        ("sample_packing: true\npad_to_sequence_len: false\n", True, "cap"),
        ("sample_packing: false\npad_to_sequence_len: true\n", False, "exact"),
        ("pretraining_dataset: c4\n", True, "exact"),
    ],
)
def test_packing_and_padding_decide_lengths(more: str, want_packed: bool, want_length: str) -> None:
    """Packed samples are padded to the length unless it is switched off."""
    found = config(BASE + more)
    assert (found.get("batch.packed"), found.get("batch.sequence_length_is")) == (want_packed, want_length)


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ("gradient_checkpointing: true\n", (True, None)),
        ("gradient_checkpointing: true\nrl: dpo\n", (False, None)),
        ("gradient_checkpointing: true\ngradient_checkpointing_kwargs: {use_reentrant: false}\n", (False, None)),
        ("gradient_checkpointing: offload\n", (False, "cpu")),
        ("gradient_checkpointing: offload_disk\n", (False, "nvme")),
        ("gradient_checkpointing: true\nactivation_offloading: legacy\n", (False, "cpu")),
        ("gradient_checkpointing: false\n", (None, None)),
    ],
)
def test_checkpointing_is_reentrant_unless_something_says_otherwise(more: str, want: tuple[bool | None, str | None]) -> None:
    """As normalize_config leaves it, and offloading takes its own way."""
    found = config(BASE + more)
    assert (found.get("checkpointing.reentrant"), found.get("offload.activations")) == want


def test_a_4_bit_base_has_its_constants_quantised_too() -> None:
    """The default of Axolotl's BitsAndBytesConfig, which the config's own arguments override."""
    text = BASE + "adapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_target_linear: true\n"
    assert config(text).get("lora.double_quant") is True
    assert config(text + "bnb_config_kwargs:\n  bnb_4bit_use_double_quant: false\n").get("lora.double_quant") is False


def test_liger_keys_without_the_plugin_do_nothing() -> None:
    """They belong to the plugin; cut cross entropy is on as soon as its plugin is listed."""
    keys = "liger_rms_norm: true\nliger_fused_linear_cross_entropy: true\n"
    assert config(BASE + keys).get("framework.fused_kernels") is None
    found = config(BASE + keys + "plugins: [axolotl.integrations.liger.LigerPlugin]\n")
    assert (found.get("framework.fused_kernels"), found.get("loss.implementation")) == (["rms_norm"], "fused")
    plugin = "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n"
    assert config(BASE + plugin).get("loss.implementation") == "fused"
    assert config(BASE + plugin + "cut_cross_entropy: false\n").get("loss.implementation") == "full"


def test_flags_win_over_the_file_and_a_launcher_has_its_own_words() -> None:
    """`--no-…` switches off, dots go into a mapping, and what stands behind `--` is torchrun's."""
    words = (
        "axolotl train a.yaml --micro-batch-size 8 --no-sample-packing --trl.beta 0.1 --launcher torchrun -- --nproc_per_node=4 --nnodes 2"
    )
    found = command(words, {"a.yaml": BASE + "sample_packing: true\nrl: grpo\n"})
    assert found.get("batch.micro_batch_size") == 8
    assert found.get("batch.packed") is False
    assert found.get("method.reference") == "full"
    assert found.get("parallelism.world_size") == 8
    assert found.warnings == []


@pytest.mark.parametrize("rl", ["simpo", "ebft", "something_new"])
def test_a_method_without_a_count_is_never_a_silent_fine_tuning(rl: str) -> None:
    """It is noted as unread, and no method is stated."""
    found = config(BASE + f"rl: {rl}\n")
    assert found.get("method.name") is None
    assert rl in found.unread[0]


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ("rl: dpo\n", "full"),
        ("rl: dpo\nadapter: lora\n", "adapter"),
        ("rl: dpo\nprecompute_ref_log_probs: true\n", "none"),
        ("rl: kto\nadapter: qlora\n", "adapter"),
        ("rl: orpo\n", None),
        ("rl: grpo\n", None),
        ("rl: grpo\ntrl: {beta: 0.01}\n", "full"),
    ],
)
def test_the_reference_of_a_method(more: str, want: str | None) -> None:
    """Adapters take the base, GRPO needs one for its penalty alone."""
    assert config(BASE + more).get("method.reference") == want


def test_an_evaluation_needs_data_and_an_occasion() -> None:
    """Without either of them nothing is evaluated; its batch is the training's unless it has one."""
    assert config(BASE + "val_set_size: 0.1\n").get("evaluate.micro_batch_size") is None
    assert config(BASE + "evals_per_epoch: 2\n").get("evaluate.micro_batch_size") is None
    assert config(BASE + "val_set_size: 0.1\nevals_per_epoch: 2\n").get("evaluate.micro_batch_size") == 2
    assert config(BASE + "val_set_size: 0.1\neval_steps: 0.25\neval_batch_size: 4\n").get("evaluate.micro_batch_size") == 4


def test_a_deepspeed_file_that_nobody_has_leaves_the_answer_open() -> None:
    """Neither at hand nor among Axolotl's own."""
    found = config(BASE + "deepspeed: /cluster/ds.json\n")
    assert found.get("parallelism.sharding") is None
    assert any("/cluster/ds.json" in each for each in found.unread)


def test_replicas_of_sharded_groups() -> None:
    """dp_replicate_size over FSDP is HSDP in groups of dp_shard_size."""
    found = config(BASE + "fsdp_version: 2\n" + FSDP + "dp_shard_size: 4\ndp_replicate_size: 2\n")
    assert (found.get("parallelism.sharding"), found.get("parallelism.shard_degree")) == ("hsdp", 4)
    assert found.get("parallelism.world_size") == 8
    assert found.warnings == []


@pytest.mark.parametrize(
    "more",
    [
        "qat:\n  weight_dtype: int4\n",
        "relora: true\n",
        "unfrozen_parameters: [lm_head.*]\n",
        "lora_modules_to_save: [lm_head]\n",
        "fp8: true\n",
    ],
)
def test_what_no_field_says_is_unread(more: str) -> None:
    """Whole sections as well as single keys; what is switched off is not there."""
    assert len(config(BASE + more).unread) == 1
    assert config(BASE + "relora: false\nunfrozen_parameters: []\nfp8:\n").unread == []


def test_processes_of_the_command() -> None:
    """`--num-processes` is handed on to accelerate."""
    found = command("axolotl train a.yaml --num-processes 4", {"a.yaml": "base_model: m/m\nmicro_batch_size: 1\n"})
    assert found.get("parallelism.world_size") == 4
