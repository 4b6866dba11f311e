"""Trainer scripts: what interacts, what changed its name, and what no field can say."""

from __future__ import annotations

import pytest
from tests.unit.readers.trainer_launch import a_launch

from peakgate.readers.files import GivenFiles
from peakgate.readers.huggingface import HuggingFace
from peakgate.readers.place import DEFAULT
from peakgate.readers.read import read_command, read_file
from peakgate.readers.reading import Reading

BASE = "train.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 2 --output_dir out"
READER = HuggingFace()


def read(extra: str = "", files: dict[str, str] | None = None, start: str = "python", gpus: int = 0) -> Reading:
    """The reading of the base command with further flags, behind a launcher's words."""
    return READER.read(a_launch(f"{start} {BASE} {extra}", files, gpus))


@pytest.mark.parametrize(
    ("flags", "want_recipe"),
    [
        ("--bf16", "amp-bf16"),
        ("--fp16 True", "amp-fp16"),
        ("--bf16 False", None),
        ("--bf16 --torch_dtype bfloat16", "bf16"),
        ("--dtype bfloat16", "bf16"),
        ("--dtype float32", "fp32"),
        ("--bf16 --dtype auto", "bf16"),
        ("--bf16 --fsdp full_shard", "fsdp-bf16"),
        ("--dtype bfloat16 --fsdp full_shard", "bf16"),
        ("--bf16 --torch_dtype bfloat16 --fsdp full_shard", "fsdp-bf16"),
    ],
)
def test_precision_is_what_the_switches_and_the_loaded_format_make(flags: str, want_recipe: str | None) -> None:
    """Autocast leaves float32 states, a 16-bit model has 16-bit ones, and FSDP under mixed precision upcasts them."""
    assert read(flags).get("precision.recipe") == want_recipe


def test_fp16_under_fsdp_computes_in_float16() -> None:
    """The one recipe of FSDP has bfloat16 products."""
    found = read("--fp16 --fsdp full_shard")
    assert (found.get("precision.recipe"), found.get("precision.compute")) == ("fsdp-bf16", "float16")


def test_a_checkpoint_in_float32_is_loaded_so() -> None:
    """`auto` is the format of the local folder's weights."""
    files = {"m/config.json": '{"model_type": "gpt2", "torch_dtype": "float32"}'}
    launch = a_launch("python train.py --model_name_or_path m --dtype auto --bf16 --per_device_train_batch_size 1", files)
    assert READER.read(launch).get("precision.recipe") == "amp-bf16"


@pytest.mark.parametrize(
    ("value", "want_sharding", "want_reshard", "want_offload"),
    [
        ("full_shard auto_wrap", "fsdp", None, None),
        ("shard_grad_op auto_wrap", "fsdp", False, None),
        ("hybrid_shard auto_wrap", "hsdp", None, None),
        ("hybrid_shard_zero2", "hsdp", False, None),
        ("no_shard", "ddp", None, None),
        ("full_shard auto_wrap offload", "fsdp", None, "cpu"),
    ],
)
def test_words_of_fsdp(value: str, want_sharding: str, want_reshard: bool | None, want_offload: str | None) -> None:
    """The Trainer's own strategies; offloading takes the optimizer along."""
    found = read(f"--fsdp '{value}'")
    assert found.get("parallelism.sharding") == want_sharding
    assert found.get("framework.fsdp.reshard_after_forward") == want_reshard
    assert found.get("offload.parameters") == found.get("offload.optimizer") == want_offload


def test_an_fsdp_config_counts_with_and_without_its_prefix() -> None:
    """`activation_checkpointing` and `fsdp_version` in one file."""
    text = '{"fsdp_version": 2, "activation_checkpointing": "true", "reshard_after_forward": false}'
    found = read("--fsdp full_shard --fsdp_config f.json", {"f.json": text})
    assert found.get("framework.fsdp.version") == 2
    assert (found.get("checkpointing.mode"), found.get("checkpointing.reentrant")) == ("full", False)
    assert found.get("framework.fsdp.reshard_after_forward") is False


@pytest.mark.parametrize(
    ("name", "want_name", "want_implementation"),
    [
        ("adamw_torch", "adamw", "foreach"),
        ("adamw_torch_fused", "adamw", "fused"),
        ("adamw_hf", "adamw", "for-loop"),
        ("adamw_bnb_8bit", "adamw-8bit", None),
        ("paged_adamw_32bit", "paged-adamw", None),
        ("paged_adamw_8bit", "paged-adamw-8bit", None),
        ("adafactor", "adafactor", None),
    ],
)
def test_names_of_optimizers(name: str, want_name: str, want_implementation: str | None) -> None:
    """transformers' names are the document's name and implementation."""
    found = read(f"--optim {name}")
    assert (found.get("optimizer.name"), found.get("optimizer.implementation")) == (want_name, want_implementation)


@pytest.mark.parametrize(
    "flags",
    [
        "--optim galore_adamw",
        "--attn_implementation flex_attention",
        "--label_smoothing_factor 0.1",
        "--auto_find_batch_size",
        "--use_cpu",
        "--no_cuda True",
        "--use_unsloth True",
    ],
)
def test_what_no_field_can_say_leaves_the_answer_open(flags: str) -> None:
    """Nothing of it becomes something that it is not."""
    found = read(flags)
    assert len(found.unread) == 1
    assert found.get("optimizer.name") is None
    assert found.get("attention.implementation") is None


def test_megatrons_plugin_leaves_the_answer_open() -> None:
    """accelerate's MEGATRON_LM is another framework."""
    assert read(start="accelerate launch --use_megatron_lm True --num_processes 8").unread == [
        "Megatron-LM's plugin of accelerate (--use_megatron_lm)"
    ]


def test_flags_win_over_accelerates_file() -> None:
    """--mixed_precision and --zero_stage against the file."""
    text = "distributed_type: DEEPSPEED\nmixed_precision: fp16\ndeepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: cpu\n"
    found = read(start="accelerate launch --config_file a.yaml --mixed_precision bf16 --zero_stage 3", files={"a.yaml": text})
    assert found.get("precision.recipe") == "deepspeed-bf16"
    assert found.get("parallelism.sharding") == "zero3"
    assert found.get("offload.optimizer") == "cpu"
    assert found.warnings == []


def test_accelerates_context_parallelism() -> None:
    """A ParallelismConfig beside FSDP2."""
    text = (
        "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\nparallelism_config:\n"
        "  parallelism_config_dp_replicate_size: 1\n  parallelism_config_cp_size: 2\n  parallelism_config_cp_comm_strategy: alltoall\n"
    )
    found = read(start="accelerate launch --config_file a.yaml", files={"a.yaml": text})
    assert (found.get("parallelism.context"), found.get("parallelism.context_type")) == (2, "ring")


def test_a_missing_config_leaves_the_answer_open() -> None:
    """What DeepSpeed is told decides, so that nothing is sure without its file."""
    found = read("--deepspeed gone.json")
    assert len(found.warnings) == len(found.unread) == 1


def test_a_missing_file_of_accelerate_says_no_sharding() -> None:
    """It is told once, leaves the answer open, and is not taken for plain data parallelism."""
    text = "accelerate launch --config_file elsewhere.yaml --num_processes 8 run_clm.py --model_name_or_path gpt2 --block_size 512"
    found = read_command(text, GivenFiles({}))
    assert found.get("parallelism.sharding") is None
    assert found.unread == ["what elsewhere.yaml says (--config_file)"]
    assert [each.partition(" ")[0] for each in found.warnings] == ["elsewhere.yaml"]


def test_buckets_that_are_auto_follow_the_models_width() -> None:
    """transformers fills them with the hidden size of a model whose configuration is at hand."""
    sizes = '"reduce_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"'
    zero = f'{{"zero_optimization": {{"stage": 3, {sizes}}}, "bf16": {{"enabled": "auto"}}}}'
    files = {"m/config.json": '{"model_type": "llama", "hidden_size": 2048}', "ds.json": zero}
    launch = a_launch("python train.py --model_name_or_path m --deepspeed ds.json --bf16 --per_device_train_batch_size 1", files)
    found = READER.read(launch)
    assert found.get("framework.zero.reduce_bucket_size") == 2048 * 2048
    assert found.get("framework.zero.param_persistence_threshold") == 20480
    assert found.get("precision.recipe") == "deepspeed-bf16"


@pytest.mark.parametrize(
    ("flags", "want_length", "want_packed", "want_kind"),
    [
        ("--block_size 512", 512, True, "exact"),
        ("--max_seq_length 512", 512, False, "cap"),
        ("--max_seq_length 512 --packing", 512, True, "exact"),
        ("--max_length 512 --packing False", 512, False, "cap"),
        ("--model_max_length 512 --padding_free", 512, True, "cap"),
        ("", None, None, None),
    ],
)
def test_names_of_lengths(flags: str, want_length: int | None, want_packed: bool | None, want_kind: str | None) -> None:
    """Blocks are filled, other sequences are padded or cut."""
    found = read(flags)
    assert found.get("batch.sequence_length") == want_length
    assert found.get("batch.packed") == want_packed
    assert found.get("batch.sequence_length_is") == want_kind


def test_earlier_names_mean_the_same() -> None:
    """per_gpu_train_batch_size, evaluation_strategy and activation_checkpointing of other versions."""
    launch = a_launch(
        "python train.py --model_name_or_path m --per_gpu_train_batch_size 3 --evaluation_strategy epoch --activation_checkpointing "
        "--activation_checkpointing_kwargs '{\"use_reentrant\": false}' --output_dir o --per_device_eval_batch_size 5"
    )
    found = READER.read(launch)
    assert found.get("batch.micro_batch_size") == 3
    assert found.get("evaluate.micro_batch_size") == 5
    assert (found.get("checkpointing.mode"), found.get("checkpointing.reentrant")) == ("full", False)


def test_defaults_of_transformers_are_told_as_such() -> None:
    """A batch of 8 that nobody stated."""
    found = READER.read(a_launch("python run_glue.py --model_name_or_path bert-base-cased --do_train --output_dir o"))
    batch = found.fields["batch.micro_batch_size"]
    assert (batch.value, batch.place.kind) == (8, DEFAULT)


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--use_lora --lora_r 4", {"rank": 4}),
        ("--use_lora False --lora_r 4", {}),
        ("--lora_rank 0", {}),
        ("--lora_r 16 --load_in_4bit", {"rank": 16, "base_dtype": "nf4"}),
        (
            "--lora_r 16 --load_in_4bit --bnb_4bit_quant_type fp4 --bnb_4bit_use_double_quant",
            {"rank": 16, "base_dtype": "int4", "double_quant": True},
        ),
        ("--lora_r 16 --load_in_8bit", {"rank": 16, "base_dtype": "int8"}),
        ("--lora_r 16 --dtype bfloat16 --use_dora", {"rank": 16, "base_dtype": "bfloat16", "method": "dora"}),
        ("--lora_r 8 --lora_target_modules q_proj,v_proj", {"rank": 8, "targets": ["q_proj", "v_proj"]}),
        ("--lora_r 8 --lora_target_modules all-linear", {"rank": 8, "targets": ["all-linear"]}),
    ],
)
def test_adapters(flags: str, want: dict[str, object]) -> None:
    """By a switch or by their rank; the base quantised or in the format that the model is loaded in."""
    found = read(flags)
    assert {path.removeprefix("lora."): stated.value for path, stated in found.fields.items() if path.startswith("lora.")} == want


@pytest.mark.parametrize(
    ("value", "want", "want_open"),
    [
        ("\"['q_proj', 'v_proj']\"", ["q_proj", "v_proj"], False),
        ("'q_proj k_proj'", ["q_proj", "k_proj"], False),
        ("None", None, False),
        ("'.*(q|v)_proj$'", None, True),
    ],
)
def test_names_of_adapted_layers(value: str, want: list[str] | None, want_open: bool) -> None:
    """Lists in several forms; a pattern can be any layer."""
    found = read(f"--lora_r 8 --lora_target_modules {value}")
    assert found.get("lora.targets") == want
    assert bool(found.unread) is want_open


def test_modules_trained_whole_leave_the_answer_open() -> None:
    """peft's modules_to_save."""
    assert len(read("--lora_r 8 --modules_to_save embed_tokens,lm_head").unread) == 1


@pytest.mark.parametrize(
    ("command", "want"),
    [
        ("python run_clm.py --model_name_or_path gpt2 --do_train", True),
        ("python run_clm.py --model_name_or_path gpt2 --do_eval", False),
        ("python train.py --per_device_train_batch_size 4", True),
        ("python evaluate.py --per_device_eval_batch_size 4", False),
        ("python train.py --batch_size 4 --output_dir o --num_train_epochs 1 --logging_steps 2 --deepspeed ds.json", False),
        ("deepspeed main.py --per_device_train_batch_size 4 --zero_stage 3 --output_dir o", False),
    ],
)
def test_what_is_recognised(command: str, want: bool) -> None:
    """Trainer scripts that train."""
    assert READER.recognises(a_launch(command)) is want


def test_liger_of_gemma_has_its_own_kernels() -> None:
    """geglu in place of swiglu; a switched off one is left out, the fused loss as well."""
    flags = '--use_liger_kernel --liger_kernel_config \'{"rope": false, "fused_linear_cross_entropy": false}\''
    launch = a_launch(f"python train.py --model_name_or_path google/gemma-2-2b --per_device_train_batch_size 1 {flags}")
    found = READER.read(launch)
    assert found.get("framework.fused_kernels") == ["geglu", "rms_norm"]
    assert found.get("loss.implementation") is None


def test_a_model_from_scratch_is_its_configuration() -> None:
    """--model_type with --config_overrides."""
    launch = a_launch("python run_clm.py --model_type gpt2 --config_overrides n_embd=1024,n_layer=4,scale_attn_weights=false --do_train")
    assert READER.read(launch).get("model.hf_config") == {"model_type": "gpt2", "n_embd": 1024, "n_layer": 4, "scale_attn_weights": False}


def test_sections_of_a_yaml_file_are_read_by_their_keys() -> None:
    """`training:` with the Trainer's arguments below it."""
    text = "model:\n  model_name_or_path: gpt2\ntraining:\n  per_device_train_batch_size: 6\n  bf16: true\n"
    found = READER.read(a_launch("python train.py --config c.yaml", {"c.yaml": text}))
    assert (found.get("batch.micro_batch_size"), found.get("precision.recipe")) == (6, "amp-bf16")
    assert str(found.fields["batch.micro_batch_size"].place) == "c.yaml:4 training.per_device_train_batch_size"


@pytest.mark.parametrize(
    "command",
    [
        "python dpo_tune.py --model_name_or_path m --per_device_train_batch_size 1",
        "tool rlhf --model m --per_device_train_batch_size 1",
        "python train.py --model_name_or_path m --per_device_train_batch_size 1 --teacher_model_name_or_path t",
        "python train.py --model_name_or_path m --per_device_train_batch_size 1 --query_max_len 64 --passage_max_len 256",
        "python train.py --model_name_or_path m --per_device_train_batch_size 1 --vision_tower openai/clip-vit-large-patch14-336",
    ],
)
def test_another_method_never_passes_for_fine_tuning(command: str) -> None:
    """By the script's name or by arguments of other methods."""
    launch = a_launch(command)
    assert READER.recognises(launch)
    assert len(READER.read(launch).unread) == 1


def test_qlora_has_defaults_of_its_own() -> None:
    """Four bits and adapters on every linear layer unless --full_finetune."""
    found = READER.read(a_launch("python qlora.py --model_name_or_path m --per_device_train_batch_size 4 --bf16"))
    assert (found.get("lora.rank"), found.get("lora.base_dtype"), found.get("lora.targets")) == (64, "nf4", ["all-linear"])
    assert (found.get("optimizer.name"), found.get("batch.micro_batch_size"), found.get("batch.sequence_length")) == (
        "paged-adamw",
        4,
        1280,
    )
    assert (
        READER.read(a_launch("python qlora.py --model_name_or_path m --per_device_train_batch_size 4 --full_finetune")).get("lora.rank")
        is None
    )


@pytest.mark.parametrize(("own", "want_warnings"), [("False", 0), ("True", 1)])
def test_fsdps_checkpoints_stand_in_the_trainers_place(own: str, want_warnings: int) -> None:
    """The Trainer's own are off beside them, and both on is refused by transformers."""
    config = "distributed_type: FSDP\nfsdp_config: {fsdp_activation_checkpointing: true}\nnum_processes: 8\n"
    start = "accelerate launch --config_file f.yaml"
    found = read(f"--bf16 --gradient_checkpointing {own}", {"f.yaml": config}, start)
    assert (found.get("checkpointing.mode"), found.get("checkpointing.reentrant")) == ("full", False)
    assert len(found.warnings) == want_warnings


@pytest.mark.parametrize(
    ("own", "flags", "want_recipe", "want_parameters"),
    [
        ("", "--bf16", "amp-bf16", "float32"),
        ("#PEAKGATE framework.version=4.57.6", "--bf16", "amp-bf16", None),
        ("#PEAKGATE framework.version=5.1", "--bf16", "bf16", None),
        ("#PEAKGATE framework.version=5.1", "", "bf16", None),
        ("#PEAKGATE framework.version=5.1", "--bf16 --dtype float32", "amp-bf16", None),
        ("#PEAKGATE framework.version=5.1", "--bf16 --fsdp full_shard", "fsdp-bf16", None),
        ("#PEAKGATE framework.version=new", "--bf16", "amp-bf16", None),
    ],
)
def test_the_version_decides_how_a_model_is_loaded(own: str, flags: str, want_recipe: str, want_parameters: str | None) -> None:
    """From transformers 5 on in the checkpoint's format; without a version the earlier behaviour is taken, and said."""
    found = read_file("job.sh", GivenFiles({"job.sh": f"{own}\npython {BASE} {flags}\n"}))
    assert (found.get("precision.recipe"), found.get("precision.parameters")) == (want_recipe, want_parameters)


def test_accelerates_own_loops_are_no_trainer() -> None:
    """run_clm_no_trainer.py and its like."""
    found = READER.read(a_launch(f"python run_clm_no_trainer.py {BASE.partition(' ')[2]}"))
    assert str(found.fields["framework.name"].place) == "default of scripts of accelerate"


def test_switches_of_earlier_trainers() -> None:
    """--adafactor is an optimizer, --sharded_ddp fairscale's, which is not counted."""
    found = read("--adafactor --sharded_ddp zero_dp_2")
    assert found.get("optimizer.name") == "adafactor"
    assert found.unread == ["fairscale's sharding (--sharded_ddp)"]
    assert read("--sharded_ddp ''").unread == []
