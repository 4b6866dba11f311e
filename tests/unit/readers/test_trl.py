"""TRL: which method a launch runs, its defaults by version, its other models and its generation."""

from __future__ import annotations

import pytest
from tests.unit.readers.trainer_launch import a_launch

from peakgate.readers.launch import Launch
from peakgate.readers.reading import Reading
from peakgate.readers.settings import read_settings
from peakgate.readers.trl import Trl

READER = Trl()
MODEL = "--model_name_or_path Qwen/Qwen2.5-0.5B"


def read(command: str, files: dict[str, str] | None = None) -> Reading:
    """The reading of a command."""
    return READER.read(a_launch(command, files))


@pytest.mark.parametrize(
    ("command", "want"),
    [
        (f"trl sft {MODEL}", "sft"),
        (f"python sft.py {MODEL}", "sft"),
        (f"python examples/scripts/dpo_vlm.py {MODEL}", "dpo"),
        (f"accelerate launch scripts/run_orpo.py {MODEL}", "orpo"),
        (f"python reward_modeling.py {MODEL}", "reward"),
        (f"python gspo.py {MODEL} --use_vllm", "grpo"),
        (f"python train.py {MODEL} --num_generations 4 --output_dir o", "grpo"),
        (f"python train.py {MODEL} --dataset_text_field text --output_dir o", "sft"),
    ],
)
def test_methods(command: str, want: str) -> None:
    """By the command, the script's name, or an argument that only one method has."""
    launch = a_launch(command)
    assert READER.recognises(launch)
    assert READER.read(launch).get("method.name") == want


@pytest.mark.parametrize("method", ["rloo", "online-dpo", "nash-md", "xpo", "cpo", "bco"])
def test_a_method_that_is_not_counted_never_becomes_another(method: str) -> None:
    """The answer stays open."""
    found = read(f"trl {method} {MODEL}")
    assert found.get("method.name") is None
    assert any(method.replace("-", "_") in sentence for sentence in found.unread)


@pytest.mark.parametrize(
    "command",
    [
        "trl vllm-serve --model Qwen/Qwen2.5-7B",
        "trl env",
        f"python -m openrlhf.cli.train_sft --pretrain {MODEL}",
        "python openrlhf/cli/train_dpo.py --pretrain m --output_dir o",
        f"python train.py {MODEL} --per_device_train_batch_size 4",
        f"python eval_reward.py {MODEL}",
    ],
)
def test_what_is_not_recognised(command: str) -> None:
    """Servers, other projects and Trainer scripts."""
    assert not READER.recognises(a_launch(command))


@pytest.mark.parametrize(
    ("flags", "want_mode", "want_recipe", "want_loss"),
    [
        ("--max_length 512", "full", "amp-bf16", None),
        ("--max_seq_length 512", "none", None, "full"),
        ("--torch_dtype bfloat16", "full", "bf16", None),
        ("--gradient_checkpointing False --bf16 False", "none", None, None),
        ("--fp16", "full", "amp-fp16", None),
        ("--loss_type nll", "full", "amp-bf16", "full"),
        ("--loss_type chunked_nll", "full", "amp-bf16", "chunked"),
        ("--use_liger_kernel", "full", "amp-bf16", "fused"),
        ("--use_liger_loss", "full", "amp-bf16", "fused"),
    ],
)
def test_defaults_follow_the_version_that_the_arguments_show(
    flags: str, want_mode: str | None, want_recipe: str | None, want_loss: str | None
) -> None:
    """Checkpoints and bf16 from 0.20 on; gone arguments are of before. Which loss is the default is not known without the version."""
    found = read(f"trl sft {MODEL} {flags}")
    assert found.get("checkpointing.mode") == want_mode
    assert found.get("precision.recipe") == want_recipe
    assert found.get("loss.implementation") == want_loss


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("", "full"),
        ("--use_peft", "adapter"),
        ("--precompute_ref_log_probs", "none"),
    ],
)
def test_the_reference_of_dpo(flags: str, want: str) -> None:
    """A copy, the base without adapters, or nothing."""
    assert read(f"trl dpo {MODEL} {flags}").get("method.reference") == want


@pytest.mark.parametrize(
    ("flags", "want"),
    [("", "none"), ("--beta 0.0", "none"), ("--beta 0.04", "full"), ("--beta 0.04 --use_peft", "adapter")],
)
def test_the_reference_of_grpo(flags: str, want: str) -> None:
    """Only with a weight for its KL term."""
    assert read(f"trl grpo {MODEL} {flags}").get("method.reference") == want


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--vllm_mode colocate", {"colocated": True, "memory_fraction": 0.3, "sleep": False}),
        ("--vllm_mode colocate --vllm_enable_sleep_mode", {"colocated": True, "memory_fraction": 0.3, "sleep": True}),
        ("--vllm_mode server", {"mode": "separate"}),
        ("--vllm_server_host 10.0.0.1", {"mode": "separate"}),
        ("--vllm_gpu_memory_utilization 0.5", {"colocated": True, "memory_fraction": 0.5, "sleep": False}),
        ("--max_prompt_length 256", {"mode": "separate"}),
    ],
)
def test_generation_with_vllm(flags: str, want: dict[str, object]) -> None:
    """On the same card by default from 1.0 on, on a server's before."""
    found = read(f"trl grpo {MODEL} --use_vllm {flags}")
    assert {path.rpartition(".")[2]: stated.value for path, stated in found.fields.items() if ".generation." in path} == want
    assert found.unread == []


def test_a_policy_that_generates_itself_leaves_the_answer_open() -> None:
    """The cache of its keys and values has no field."""
    assert len(read(f"trl grpo {MODEL}").unread) == 1


@pytest.mark.parametrize(
    ("flags", "want_length", "want_target"),
    [
        ("--max_prompt_length 256 --max_completion_length 1024", 1280, 1024),
        ("--max_completion_length 1024", 1536, 1024),
        ("--max_prompt_length 100", 356, 256),
        ("--vllm_max_model_length 4096 --max_completion_length 1024", 4096, 1024),
    ],
)
def test_lengths_of_rollouts(flags: str, want_length: int, want_target: int) -> None:
    """A prompt and its answer."""
    found = read(f"trl grpo {MODEL} --use_vllm {flags}")
    assert (found.get("batch.sequence_length"), found.get("batch.target_length")) == (want_length, want_target)


def test_adapters_are_only_made_by_their_switch() -> None:
    """--lora_r alone makes none in TRL's own scripts."""
    assert read(f"trl sft {MODEL} --lora_r 8").get("lora.rank") is None
    found = read(f"trl sft {MODEL} --use_peft")
    assert (found.get("lora.rank"), found.get("lora.dropout")) == (16, 0.05)


def test_adapters_under_zero3_have_the_bases_format_and_reentrant_checkpoints() -> None:
    """sft_trainer.py, for ZeRO-3 with peft."""
    found = read(f"trl sft {MODEL} --use_peft --accelerate_config zero3 --num_processes 4")
    assert found.get("lora.adapter_dtype") == "bfloat16"
    assert found.get("checkpointing.reentrant") is True
    assert found.get("parallelism.world_size") == 4


def test_flags_win_over_the_config_file() -> None:
    """TrlParser: the file gives defaults."""
    found = read(
        "trl sft --config c.yaml --max_length 256",
        {"c.yaml": "model_name_or_path: gpt2\nmax_length: 512\nper_device_train_batch_size: 1\n"},
    )
    assert (found.get("batch.sequence_length"), found.get("batch.micro_batch_size")) == (256, 1)
    assert found.warnings == []


def test_other_models_of_a_method_are_named() -> None:
    """GKD's teacher, PPO's critic and reward model."""
    found = read(f"python gkd.py {MODEL} --teacher_model_name_or_path Qwen/Qwen2.5-7B --lmbda 0.0")
    assert (found.get("method.name"), found.get("method.teacher.preset"), found.unread) == ("distill", "Qwen/Qwen2.5-7B", [])
    assert len(read(f"python gkd.py {MODEL} --teacher_model_name_or_path Qwen/Qwen2.5-7B").unread) == 1
    found = read("python ppo.py --sft_model_path s --reward_model_path r --model_name_or_path s")
    assert (found.get("method.critic.preset"), found.get("method.reward.preset")) == ("r", "r")


def test_activations_of_sft_may_be_offloaded() -> None:
    """activation_offloading."""
    assert read(f"trl sft {MODEL} --activation_offloading").get("offload.activations") == "cpu"


def test_a_config_file_that_stands_by_itself() -> None:
    """By its folder's name; the files of others are not TRL's."""
    text = "model_name_or_path: gpt2\nper_device_train_batch_size: 2\nuse_peft: true\n"
    launch = Launch(config=read_settings(text, "recipes/zephyr/dpo/config_full.yaml"), config_file="recipes/zephyr/dpo/config_full.yaml")
    assert READER.recognises(launch)
    found = READER.read(launch)
    assert (found.get("method.name"), found.get("method.reference"), found.get("lora.rank")) == ("dpo", "adapter", 16)
    assert not READER.recognises(Launch(config=read_settings(f"stage: dpo\n{text}", "dpo.yaml"), config_file="dpo.yaml"))


@pytest.mark.parametrize(
    ("command", "want_length", "want_reentrant"),
    [
        ("trl dpo", "trainer/dpo_config.py", "trainer/dpo_trainer.py"),
        ("trl kto", "trainer/kto_config.py", "trainer/kto_trainer.py"),
        ("python gkd.py", "trainer/sft_config.py", "trainer/sft_trainer.py"),
        ("python orpo.py", "experimental/orpo/orpo_config.py", "experimental/orpo/orpo_trainer.py"),
    ],
)
def test_defaults_are_those_of_the_methods_own_files(command: str, want_length: str, want_reentrant: str) -> None:
    """Each method has a config and a trainer of its own."""
    found = read(f"{command} {MODEL}")
    assert want_length in str(found.fields["batch.sequence_length"].place)
    assert want_reentrant in str(found.fields["checkpointing.reentrant"].place)


def test_ppo_has_no_limit_of_its_own() -> None:
    """Prompts are not cut, so no length is made up."""
    assert read(f"python ppo.py {MODEL}").get("batch.sequence_length") is None


def test_adapters_of_orpo_keep_their_checkpoints_under_zero3() -> None:
    """Only the trainers under trainer/ force reentrant ones."""
    files = {"z3.json": '{"zero_optimization": {"stage": 3}}'}
    flags = f"{MODEL} --use_peft --deepspeed z3.json"
    assert read(f"python orpo.py {flags}", files).get("checkpointing.reentrant") is False
    assert read(f"python dpo.py {flags}", files).get("checkpointing.reentrant") is True


@pytest.mark.parametrize(
    "words", ["--config a.yaml sft.max_num_steps=10", "policy.model_name=x --output_dir o", "++policy.x.y=1 --output_dir o"]
)
def test_scripts_with_overrides_are_others(words: str) -> None:
    """Hydra's and OmegaConf's words; TRL takes none."""
    assert not READER.recognises(a_launch(f"python examples/run_sft.py {words}"))


def test_a_file_of_what_is_merged_or_asked_is_no_launch() -> None:
    """A model and a template, in a folder that is called after a method, train nothing."""
    text = "model_name_or_path: Qwen/Qwen3-4B\nadapter_name_or_path: out/sft\nexport_dir: merged\n"
    assert not READER.recognises(Launch(config=read_settings(text, "a.yaml"), config_file="merge/qwen_sft.yaml"))
    assert READER.recognises(Launch(config=read_settings(f"{text}learning_rate: 1e-5\n", "a.yaml"), config_file="merge/qwen_sft.yaml"))
