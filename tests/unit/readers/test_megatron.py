"""Megatron-LM's flags: interactions that decide the fields, and that nothing makes the reader raise."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.launched import a_config, a_launch, launch_of, read, values
from tests.unit.readers.limits import SECONDS

from peakgate.readers.megatron import MegatronReader
from peakgate.readers.place import DEFAULT

SIZES = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1"
BLOCK_OF_FIVE = " --recompute-method block --recompute-num-layers 5"
LLAMA = "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --untie-embeddings-and-output-weights"


def fields(flags: str, world: int | None = None, program: str = "pretrain_gpt.py") -> dict[str, object]:
    """The fields that flags beside the sizes give."""
    return values(read(MegatronReader(), a_launch(f"{program} {SIZES} {flags}", world=world)))


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("", "gpt3"),
        (LLAMA, "llama"),
        (f"{LLAMA} --add-qkv-bias", "qwen2"),
        (f"{LLAMA} --qk-layernorm", "qwen3"),
        ("--squared-relu --position-embedding-type rope", "nemotron"),
        ("--use-rotary-position-embeddings", "nemotron"),
        ("--position-embedding-type alibi --embed-layernorm", "bloom"),
        (f"{LLAMA} --num-experts 8", "mixtral"),
        (f"{LLAMA} --num-experts 8 --qk-layernorm", "qwen3_moe"),
        (f"{LLAMA} --num-experts 8 --multi-latent-attention", "deepseek_v2"),
        (f"{LLAMA} --num-experts 8 --multi-latent-attention --moe-router-score-function sigmoid", "deepseek_v3"),
        ("--hybrid-layer-pattern M-M*-", "nemotron_h"),
    ],
)
def test_flags_decide_the_block(flags: str, want: str) -> None:
    """Gates, positions, norms of heads, experts and latent attention."""
    assert fields(flags)["model.transformer.block"] == want


@pytest.mark.parametrize(("program", "want"), [("pretrain_bert.py", "bert"), ("pretrain_t5.py", "t5"), ("finetune_my_gpt.py", "gpt3")])
def test_the_program_decides_the_kind_of_model(program: str, want: str) -> None:
    """BERT and T5 by the script's name, a decoder otherwise."""
    assert fields("", program=program)["model.transformer.block"] == want


@pytest.mark.parametrize(
    ("flags", "world", "want"),
    [
        ("--global-batch-size 64", 8, 8),
        ("--global-batch-size 64 --tensor-model-parallel-size 2 --context-parallel-size 2", 8, 32),
        ("--global-batch-size 64 --pipeline-model-parallel-size 4", None, 64),
        ("--step-batch-size-schedule '0:8 1B:32 2B:128'", 8, 16),
        ("", 8, None),
    ],
)
def test_the_global_batch_gives_the_accumulation(flags: str, world: int | None, want: int | None) -> None:
    """Micro-batches a step: the global batch over micro-batch and data degree; the last of a schedule."""
    assert fields(flags, world).get("batch.gradient_accumulation_steps") == want


def test_a_schedule_of_batches_may_be_several_words() -> None:
    """A shell that splits it leaves a list."""
    assert fields("--step-batch-size-schedule 0:8 1B:32 2B:128", 8)["batch.gradient_accumulation_steps"] == 16


def test_a_degree_that_cannot_be_read_leaves_the_accumulation_open() -> None:
    """A variable that nobody set is one warning, and no data degree is made up."""
    reading = read(
        MegatronReader(), a_launch(f"pretrain_gpt.py {SIZES} --tensor-model-parallel-size '$TP' --global-batch-size 64", world=8)
    )
    assert len(reading.warnings) == 1
    assert not {"parallelism.tensor", "batch.gradient_accumulation_steps"} & set(reading.fields)


def test_a_global_batch_that_does_not_divide_is_a_warning() -> None:
    """Both places are named."""
    reading = read(MegatronReader(), a_launch(f"pretrain_gpt.py {SIZES} --global-batch-size 12", world=8))
    assert "--global-batch-size" in reading.warnings[0]
    assert "--micro-batch-size" in reading.warnings[0]


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--bf16", {"recipe": "megatron-bf16"}),
        ("--bf16 --grad-reduce-in-bf16", {"recipe": "megatron-bf16", "gradients": "bfloat16"}),
        ("--fp16", {"recipe": "megatron-fp16", "gradients": "float16"}),
        ("--fp16 --accumulate-allreduce-grads-in-fp32", {"recipe": "megatron-fp16"}),
        ("", {"recipe": "fp32"}),
        ("--bf16 --fp8-hybrid", {"recipe": "megatron-bf16", "compute": "float8", "fp8.recipe": "delayed"}),
        ("--bf16 --fp8-format e4m3 --fp8-recipe tensorwise", {"recipe": "megatron-bf16", "compute": "float8", "fp8.recipe": "current"}),
        ("--bf16 --fp4-format e2m1", {"recipe": "megatron-bf16", "compute": "float8", "fp8.recipe": "nvfp4"}),
        (
            "--bf16 --use-precision-aware-optimizer --main-params-dtype fp16 --exp-avg-dtype fp8 --exp-avg-sq-dtype fp8",
            {"recipe": "megatron-bf16", "master_weights": "float16", "optimizer_states": "float8"},
        ),
    ],
)
def test_formats(flags: str, want: dict[str, str]) -> None:
    """Main gradients follow --bf16 and --fp16 differently; 8-bit products and smaller states are stated over the recipe."""
    found = {path.removeprefix("precision."): value for path, value in fields(flags).items() if path.startswith("precision.")}
    assert found == want


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--recompute-activations", {"mode": "selective"}),
        (
            "--recompute-granularity selective --recompute-modules core_attn moe_act",
            {"mode": "selective", "modules": ["core_attn", "moe_act"]},
        ),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 4", {"mode": "full", "every": 4}),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 3", {"mode": "full", "layers": 3}),
        ("--checkpoint-activations", {"mode": "full"}),
        ("--activations-checkpoint-method block --activations-checkpoint-num-layers 2", {"mode": "full", "layers": 2}),
        ("--recompute-method uniform", {"mode": "none"}),
        (
            "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 --recompute-granularity full" + BLOCK_OF_FIVE,
            {"mode": "full", "layers": 8},
        ),
    ],
)
def test_recomputation(flags: str, want: dict[str, object]) -> None:
    """Granularity, method and number of layers of today and of earlier releases; block counts in each chunk of a stage."""
    found = {path.removeprefix("checkpointing."): value for path, value in fields(flags).items() if path.startswith("checkpointing.")}
    assert found == want


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 7", [5, 10, 10, 7]),
        ("--decoder-last-pipeline-num-layers 2", [10, 10, 10, 2]),
        ("--pipeline-model-parallel-layout Et*6|t*9|t*9|t*8L", [6, 9, 9, 8]),
        ("--pipeline-model-parallel-layout 'Ettt|(t*4|)*6,t*5L'", [7, 8, 8, 9]),
        ("", None),
    ],
)
def test_layers_of_stages(flags: str, want: list[int] | None) -> None:
    """Named outer stages, or a layout of stages and chunks; none where all are alike."""
    assert fields(f"--pipeline-model-parallel-size 4 {flags}").get("parallelism.stage_layers") == want


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--moe-layer-freq ([0]*3+[1]*29)", {"dense_layers": 3}),
        ("--moe-shared-expert-intermediate-size 2048 --moe-ffn-hidden-size 1024 --multi-latent-attention", {"shared_experts": 2}),
        ("--moe-router-topk 6", {"experts_per_token": 6}),
        ("", {"experts_per_token": 2, "experts": 64}),
    ],
)
def test_experts(flags: str, want: dict[str, int]) -> None:
    """Leading dense layers, shared experts, the experts of a token."""
    found = fields(f"{LLAMA} --num-experts 64 {flags}")
    assert {name: found.get(f"model.transformer.{name}") for name in want} == want


def test_latent_attention_takes_megatrons_defaults() -> None:
    """--q-lora-rank is None: no compression; --kv-lora-rank is 32."""
    found = fields(f"{LLAMA} --num-experts 8 --multi-latent-attention --kv-channels 16")
    assert found["model.transformer.mla.q_lora_rank"] == 0
    assert found["model.transformer.mla.kv_lora_rank"] == 32
    assert "model.transformer.head_dim" not in found


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--vocab-size 50257", 50257),
        ("--vocab-size 151643 --make-vocab-size-divisible-by 1187 --tensor-model-parallel-size 2", 151936),
        ("--padded-vocab-size 128256 --vocab-size 1", 128256),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B", 128256),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/Qwen3-30B-A3B/", 151669),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model our/llama-30b", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model our/model --vocab-file vocab.json", None),
        ("--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model tokenizer.model", None),
        ("--tokenizer-type NullTokenizer", None),
        ("--tokenizer-type GPT2BPETokenizer --make-vocab-size-divisible-by 1 --tensor-model-parallel-size 8", 50264),
        ("--tokenizer-type GPT2BPETokenizer --vocab-size 1000", 1000),
        ("--tokenizer-type TikTokenizer --tokenizer-model tok.json", 131072),
        ("--vocab-file $VOCAB --merge-file $MERGES", 50257),
        ("", None),
    ],
)
def test_the_vocabulary(flags: str, want: int | None) -> None:
    """Padded here only to another multiple than 128; a well-known tokenizer's own size, and its name is no model."""
    found = fields(flags)
    assert found.get("model.transformer.vocab_size") == want
    assert "model.preset" not in found


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ("--use-torch-fsdp2", "FSDP2"),
        ("--use-megatron-fsdp", "Megatron-FSDP"),
        ("--use-checkpoint-args", "checkpoint"),
        ("--cpu-offloading-num-layers 4", "host"),
        ("--optimizer soap", "soap"),
        ("--num-experts 8 --expert-model-parallel-size 8", "allgather"),
        ("--num-experts 8 --moe-layer-freq 2", "dense layers"),
        ("--recompute-granularity selective --recompute-modules moe", "moe"),
        ("--cuda-graph-impl local --cuda-graph-scope attn", "CUDA graphs"),
        ("--experimental-attention-variant dsa", "attention"),
        ("--fp32-residual-connection", "fp32"),
    ],
)
def test_what_has_no_words_is_said(flags: str, word: str) -> None:
    """A feature that nothing counts makes the answer undecided."""
    reading = read(MegatronReader(), a_launch(f"pretrain_gpt.py {SIZES} {LLAMA} {flags}", world=64))
    assert any(word in sentence for sentence in reading.unread), reading.unread


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--enable-cuda-graph", "per-layer"),
        ("--external-cuda-graph", "per-layer"),
        ("--cuda-graph-impl full_iteration", "full-iteration"),
        ("--cuda-graph-impl local --cuda-graph-scope full_iteration", "full-iteration"),
        ("--cuda-graph-impl none", None),
    ],
)
def test_graphs(flags: str, want: str | None) -> None:
    """Switches of earlier versions and --cuda-graph-impl."""
    assert fields(flags).get("framework.cuda_graphs") == want


def test_the_distributed_optimizer_shards_over_its_instances() -> None:
    """data × context ranks, divided by the instances."""
    found = fields("--use-distributed-optimizer --num-distributed-optimizer-instances 4 --context-parallel-size 2", 32)
    assert found["parallelism.sharding"] == "zero1"
    assert found["parallelism.shard_degree"] == 8


def test_a_default_is_no_statement() -> None:
    """Dropout that nobody states is Megatron's own, and says so."""
    reading = read(MegatronReader(), a_launch(f"pretrain_gpt.py {SIZES} --attention-dropout 0"))
    assert reading.fields["dropout.attention"].place.key == "--attention-dropout"
    assert reading.fields["dropout.hidden"].place.kind == DEFAULT


def test_experts_need_a_world() -> None:
    """A config that names no GPUs gets the smallest world in which the experts have their ranks."""
    config = (
        "MODEL_ARGS: {--num-layers: 8, --hidden-size: 64, --num-attention-heads: 4, --num-experts: 16, --expert-model-parallel-size: 8}"
    )
    assert values(read(MegatronReader(), a_config(config)))["parallelism.world_size"] == 8


def test_deepspeeds_own_file_wins_over_the_flag() -> None:
    """The engine goes by its JSON; the contradiction names both places."""
    launch = a_launch(
        f"pretrain_gpt.py {SIZES} --deepspeed --zero-stage 3 --deepspeed_config z.json",
        files={"z.json": '{"zero_optimization": {"stage": 1}}'},
    )
    reading = read(MegatronReader(), launch)
    assert reading.get("parallelism.sharding") == "zero1"
    assert "--zero-stage" in reading.warnings[0]
    assert "z.json" in reading.warnings[0]


def test_a_task_is_a_bert_with_a_head_of_classes() -> None:
    """tasks/main.py: fine-tuning, not pretraining."""
    found = fields("--task MNLI", program="tasks/main.py")
    assert (found["model.transformer.block"], found["model.transformer.head"], found["method.name"]) == ("bert", "classification", "sft")


@pytest.mark.parametrize("program", ["tools/run_text_generation_server.py", "tools/convert.py", "generate_samples_gpt.py", "evaluate.py"])
def test_what_trains_nothing_is_not_recognised(program: str) -> None:
    """Servers, converters and evaluations take the same flags."""
    assert not MegatronReader().recognises(a_launch(f"{program} {SIZES}"))
    assert not MegatronReader().recognises(a_launch(f"tasks/main.py {SIZES} --task LAMBADA"))


@pytest.mark.parametrize("program", ["pretrain_vlm.py", "examples/multimodal/train.py", "finetune_qwen_vl.py"])
def test_a_vision_tower_is_said(program: str) -> None:
    """By the name of the program or its folder."""
    assert "vision" in read(MegatronReader(), a_launch(f"{program} {SIZES}")).unread[0]


def test_other_programs_are_not_recognised() -> None:
    """A few flags that others have too are not enough."""
    assert not MegatronReader().recognises(a_launch("train.py --num-layers 3 --micro-batch-size 2"))
    assert not MegatronReader().recognises(a_launch("echo"))
    assert not MegatronReader().recognises(a_launch(f"megatron sft --model Qwen/Qwen2.5-7B {SIZES}"))


NAMES = st.sampled_from(
    [
        "num-layers",
        "hidden-size",
        "num-attention-heads",
        "num-query-groups",
        "micro-batch-size",
        "global-batch-size",
        "seq-length",
        "tensor-model-parallel-size",
        "pipeline-model-parallel-size",
        "num-layers-per-virtual-pipeline-stage",
        "pipeline-model-parallel-layout",
        "moe-layer-freq",
        "num-experts",
        "recompute-modules",
        "recompute-num-layers",
        "cp-comm-type",
        "step-batch-size-schedule",
        "exp-avg-dtype",
        "fp8-recipe",
        "hybrid-layer-pattern",
        "optimizer",
        "make-vocab-size-divisible-by",
        "vocab-size",
        "decoder-first-pipeline-num-layers",
        "num-distributed-optimizer-instances",
        "moe-router-topk",
        "optimizer-offload-fraction",
        "moe-expert-capacity-factor",
        "deepspeed",
        "zero-stage",
        "yaml-cfg",
        "expert-model-parallel-size",
    ]
)
VALUES = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.text(max_size=40),
    st.sampled_from(["", "none", "8", "([0]*9+[1]*9)*9", "(t|)*9999", "1e400"]),
)


@given(st.lists(st.tuples(NAMES, st.lists(VALUES, max_size=3)), max_size=12), st.one_of(st.none(), st.integers(1, 4096)))
def test_no_words_make_it_raise(flags: list[tuple[str, list[str]]], world: int | None) -> None:
    """Any value of any flag, several or none."""
    words = ["pretrain_gpt.py", *SIZES.split(), *(word for name, found in flags for word in (f"--{name}", *found))]
    launch = launch_of(words, world=world, files={})
    reading = MegatronReader().read(launch)
    assert all(str(stated.place) for stated in reading.fields.values())


@pytest.mark.parametrize("pattern", ["(" * 1900, "[" * 1900, "((" * 400 + "[1]" + ")*9" * 400, "t" * 2000, "(t|)*9999" * 100])
@pytest.mark.parametrize("flag", ["--moe-layer-freq", "--pipeline-model-parallel-layout", "--hybrid-layer-pattern"])
def test_patterns_unfold_within_bounds(flag: str, pattern: str) -> None:
    """Deep, long and multiplying patterns end soon."""
    begun = time.process_time()
    MegatronReader().read(launch_of(["pretrain_gpt.py", *SIZES.split(), "--num-experts", "8", flag, pattern]))
    assert time.process_time() - begun < SECONDS


def test_many_words_are_read_in_time() -> None:
    """Only so many of them."""
    words = ["pretrain_gpt.py", *SIZES.split(), *["--num-layers", "7"] * 100_000]
    launch = launch_of(words)
    begun = time.process_time()
    MegatronReader().read(launch)
    assert time.process_time() - begun < SECONDS


@pytest.mark.parametrize(("mode", "want"), [("inference", False), ("pretraining", True), ("rl", True)])
def test_a_test_case_that_generates_is_not_known(mode: str, want: bool) -> None:
    """The functional tests of generation have the flags of a model as well."""
    assert MegatronReader().recognises(a_config(f"MODE: {mode}\nMODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n")) is want


@pytest.mark.parametrize(
    ("layers", "stages", "method", "want", "warnings"),
    [
        (70, 12, "type:transformer|embedding", [5, *[6] * 10, 5], 0),
        (30, 4, "type:transformer|embedding", [7, 8, 8, 7], 0),
        (32, 4, "type:transformer|embedding", None, 1),
        (32, 4, "type:transformer", None, 0),
    ],
)
def test_words_at_both_ends_count_as_layers(layers: int, stages: int, method: str, want: list[int] | None, warnings: int) -> None:
    """The pipeline of DeepSpeed divides layers and the two tables of words alike."""
    flags = f"--num-layers {layers} --pipeline-model-parallel-size {stages} --pp-partition-method {method} --deepspeed"
    reading = read(MegatronReader(), launch_of(f"pretrain_gpt.py {SIZES} {flags}".split(), world=stages))
    assert values(reading).get("parallelism.stage_layers") == want
    assert sum("stages" in warning for warning in reading.warnings) == warnings


def test_what_words_are_padded_to_is_the_table() -> None:
    """As the fork for BLOOM calls it."""
    assert fields("--pad-vocab-size-to 250880")["model.transformer.vocab_size"] == 250880
