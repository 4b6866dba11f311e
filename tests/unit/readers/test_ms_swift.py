"""ms-swift's arguments, over Hugging Face's trainer and over Megatron-LM."""

from __future__ import annotations

import pytest
from tests.unit.readers.finetuning import command, config

from peakgate.readers.launch import Launch
from peakgate.readers.ms_swift import MsSwift
from peakgate.readers.place import FLAG, Place, Stated

BASE = "swift sft --model Qwen/Qwen2.5-7B --max_length 2048"


@pytest.mark.parametrize("name", ["train_type", "tuner_type", "sft_type"])
def test_the_tuner_by_its_three_names(name: str) -> None:
    """Adapters when nothing is said; the whole model by any of the names that versions had."""
    assert command(BASE).get("lora.targets") == ["all-linear"]
    assert command(f"{BASE} --{name} full").get("lora.targets") is None


@pytest.mark.parametrize(("micro", "processes", "want"), [(1, 1, 16), (4, 2, 2), (1, 8, 2), (8, 8, 1)])
def test_accumulation_fills_a_global_batch_of_16(micro: int, processes: int, want: int) -> None:
    """When it is not stated."""
    found = command(f"NPROC_PER_NODE={processes} {BASE} --per_device_train_batch_size {micro}")
    assert found.get("batch.gradient_accumulation_steps") == want


@pytest.mark.parametrize(
    ("kind", "want"),
    [("dpo", "dpo"), ("kto", "kto"), ("orpo", "orpo"), ("rm", "reward"), ("gkd", "distill"), ("simpo", None), ("cpo", None)],
)
def test_kinds_of_preference_optimisation(kind: str, want: str | None) -> None:
    """What is not counted is unread."""
    found = command(f"swift rlhf --rlhf_type {kind} --model Qwen/Qwen2.5-7B")
    assert found.get("method.name") == want
    assert bool(found.unread) == (want is None)


@pytest.mark.parametrize(("name", "want"), [("zero2", "zero2"), ("zero3_offload", "zero3"), ("zero0", "ddp")])
def test_deepspeed_by_the_names_of_its_files(name: str, want: str) -> None:
    """Six names stand for files that ms-swift brings along."""
    found = command(f"NPROC_PER_NODE=8 {BASE} --train_type full --torch_dtype bfloat16 --deepspeed {name}")
    assert found.get("parallelism.sharding") == want
    assert found.get("precision.recipe") == "deepspeed-bf16"
    assert found.get("offload.parameters") == ("cpu" if "offload" in name else None)


def test_fsdp2_checkpoints_by_itself() -> None:
    """The file behind the name turns its own checkpointing on."""
    found = command(f"NPROC_PER_NODE=2 {BASE} --train_type full --torch_dtype bfloat16 --fsdp fsdp2 --gradient_checkpointing false")
    want = {"parallelism.sharding": "fsdp", "framework.fsdp.version": 2, "checkpointing.mode": "full", "precision.recipe": "fsdp-bf16"}
    assert {path: found.get(path) for path in want} == want


def test_megatron_defaults_are_ms_swifts() -> None:
    """Selective recomputation of the attention's core, a distributed optimizer, the whole model."""
    found = command("NPROC_PER_NODE=4 megatron pt --model Qwen/Qwen3-8B --tensor_model_parallel_size 2 --max_length 4096")
    want = {
        "framework.name": "megatron",
        "method.name": "pretrain",
        "checkpointing.mode": "selective",
        "checkpointing.modules": ["core_attn"],
        "framework.megatron.distributed_optimizer": True,
        "precision.recipe": "megatron-bf16",
        "batch.gradient_accumulation_steps": 8,
        "lora.rank": None,
    }
    assert {path: found.get(path) for path in want} == want


@pytest.mark.parametrize("verb", ["infer", "export", "deploy", ""])
def test_other_verbs_are_no_training(verb: str) -> None:
    """Inference and export are not this reader's."""
    words = [Stated(word, Place(kind=FLAG)) for word in ["swift", verb] if word]
    assert not MsSwift().recognises(Launch(words=words))


@pytest.mark.parametrize("program", ["swift sft", "megatron sft"])
@pytest.mark.parametrize(("task", "want"), [("seq_cls", 1), ("embedding", 1), ("reranker", 1), ("causal_lm", 0)])
def test_another_head_is_unread(program: str, task: str, want: int) -> None:
    """Logits of words are the largest part of a step, and classes have none."""
    assert len(command(f"{program} --model Qwen/Qwen2.5-7B --max_length 2048 --task_type {task}").unread) == want


@pytest.mark.parametrize("program", ["swift", "megatron"])
@pytest.mark.parametrize(("more", "want"), [("", 1024 + 512), ("--max_completion_length 2048", 1024 + 2048)])
def test_an_answer_stands_behind_its_prompt(program: str, more: str, want: int) -> None:
    """`max_length` is the prompt's where the policy answers."""
    found = command(f"{program} rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B --max_length 1024 {more}")
    assert found.get("batch.sequence_length") == want


def test_the_models_beside_the_trained_one_over_megatron() -> None:
    """A teacher, and a reference that adapters have in their base."""
    base = "megatron rlhf --model Qwen/Qwen3-4B --rlhf_type"
    assert command(f"{base} gkd --teacher_model Qwen/Qwen3-32B").get("method.teacher.preset") == "Qwen/Qwen3-32B"
    assert command(f"{base} dpo").get("method.reference") == "full"
    assert command(f"{base} dpo --tuner_type lora").get("method.reference") == "adapter"


FILE = "model: Qwen/Qwen2.5-7B\ndataset: a#10\ntuner_type: full\nmax_length: 2048\n"


@pytest.mark.parametrize(("more", "want"), [("per_device_train_batch_size: 2\n", "huggingface"), ("micro_batch_size: 2\n", "megatron")])
def test_a_file_by_itself(more: str, want: str) -> None:
    """Which of the two trainers it is for is in its sizes."""
    found = config(FILE + more)
    assert (found.format, found.get("framework.name"), found.get("batch.micro_batch_size")) == ("ms-swift", want, 2)


@pytest.mark.parametrize(
    "words", ["sft f.yaml", "sft --config f.yaml", "sft --save_steps 5 --config f.yaml", "sft --config f.yaml --seed 1"]
)
def test_a_file_wherever_it_is_named(words: str) -> None:
    """In the first place or behind --config."""
    assert command(f"swift {words}", {"f.yaml": FILE}).get("model.preset") == "Qwen/Qwen2.5-7B"
