"""What the trainers around Hugging Face's modules have in common, and that nothing they are given makes them raise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.fuzz import read_soundly

from peakgate.memory.choices import CHOICES
from peakgate.readers.axolotl import Axolotl
from peakgate.readers.axolotl_parts import NOT_COUNTED
from peakgate.readers.files import FileError, GivenFiles
from peakgate.readers.finetuners.attention import attention
from peakgate.readers.finetuners.liger import state_liger
from peakgate.readers.finetuners.optimizers import OPTIMIZERS, state_optimizer
from peakgate.readers.finetuners.targets import state_targets
from peakgate.readers.finetuners.values import amount, count, words
from peakgate.readers.finetuners.zero_files import AXOLOTL, LLAMA_FACTORY, MS_SWIFT
from peakgate.readers.launch import Launch, Reader
from peakgate.readers.llamafactory import LlamaFactory
from peakgate.readers.ms_swift import MsSwift
from peakgate.readers.openrlhf import OpenRlhf
from peakgate.readers.place import FLAG, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings
from peakgate.readers.verl import Verl

PLACE = Place(kind=FLAG, key="--x")


def stated(value: object) -> Stated:
    """A setting."""
    return Stated(value, PLACE)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("adamw_torch", ("adamw", "foreach")),
        ("adamw_torch_fused", ("adamw", "fused")),
        ("adamw_bnb_8bit", ("adamw-8bit", None)),
        ("paged_adamw_8bit", ("paged-adamw-8bit", None)),
        ("OptimizerNames.ADAFACTOR", ("adafactor", None)),
        ("galore_adamw", (None, None)),
        ("adamw_torch_4bit", (None, None)),
    ],
)
def test_optimizers(name: str, want: tuple[str | None, str | None]) -> None:
    """By their names in the trainer; what is not counted is unread."""
    reading = Reading()
    state_optimizer(stated(name), reading)
    assert (reading.get("optimizer.name"), reading.get("optimizer.implementation")) == want
    assert bool(reading.unread) == (want[0] is None)


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("flash_attention_2", "flash"),
        ("fa2", "flash"),
        ("kernels-community/vllm-flash-attn3", "flash"),
        ("sdpa", "sdpa"),
        ("disabled", "eager"),
        ("auto", None),
    ],
)
def test_attention(word: str, want: str | None) -> None:
    """By the names of all the trainers."""
    assert attention(stated(word)) == want


def test_an_attention_that_is_not_known() -> None:
    """It is an error for whoever reads the row."""
    with pytest.raises(ValueError, match="no attention"):
        attention(stated("mystery"))


@pytest.mark.parametrize(("model", "want"), [("google/gemma-2-9b", "geglu"), ("Qwen/Qwen3-8B", "swiglu")])
def test_the_gate_of_a_family(model: str, want: str) -> None:
    """Gemma's gate is another one."""
    reading = Reading()
    reading.state("model.preset", model, PLACE)
    state_liger(stated(value=True), reading)
    kernels = reading.get("framework.fused_kernels")
    assert isinstance(kernels, list)
    assert want in kernels


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (["q_proj", "v_proj"], ["q_proj", "v_proj"]),
        ("q_proj,k_proj", ["q_proj", "k_proj"]),
        ("[q_proj, v_proj]", ["q_proj", "v_proj"]),
        ("all", ["all-linear"]),
        (r"model.language_model.layers.[\d]+.(mlp|self_attn).(up|down|q|v)_proj", ["up_proj", "down_proj", "q_proj", "v_proj"]),
        (r".*\.(q_proj|v_proj)$", ["q_proj", "v_proj"]),
        (r".*\.(mlp|attn)\..*", None),
    ],
)
def test_adapted_layers(value: object, want: list[str] | None) -> None:
    """Lists, one word, and patterns that list projections; another pattern is unread."""
    reading = Reading()
    assert state_targets(stated(value), reading)
    assert reading.get("lora.targets") == want
    assert bool(reading.unread) == (want is None)


def test_values_that_cannot_be_read_are_nothing() -> None:
    """Switches, words and lists in place of numbers."""
    assert [count(stated(each)) for each in ("4", 4, 4.0, "-1", "x", True, [1], float("nan"))] == [4, 4, 4, 0, 0, 0, 0, 0]
    assert [amount(stated(each)) for each in ("0.5", "1e-3", 0.25, "x", True, "inf")] == [0.5, 0.001, 0.25, 0, 0, 0]
    assert words(stated("[q_proj,'v_proj']")) == ["q_proj", "v_proj"]


@pytest.mark.parametrize("files", [AXOLOTL, LLAMA_FACTORY, MS_SWIFT], ids=["axolotl", "llamafactory", "ms-swift"])
def test_every_file_that_a_trainer_brings_along_has_a_stage(files: dict[str, Settings]) -> None:
    """The number in its name."""
    for name, config in files.items():
        stage = config("zero_optimization.stage")
        assert stage is not None
        assert str(stage.value) in name


HEADS: dict[str, tuple[Reader, list[str]]] = {
    "axolotl": (Axolotl(), ["axolotl", "train", "a.yaml"]),
    "llamafactory": (LlamaFactory(), ["llamafactory-cli", "train", "a.yaml"]),
    "ms-swift": (MsSwift(), ["swift", "rlhf"]),
    "megatron": (MsSwift(), ["megatron", "sft"]),
    "verl": (Verl(), ["verl.trainer.main_ppo"]),
    "verl-sft": (Verl(), ["verl.trainer.fsdp_sft_trainer"]),
    "openrlhf": (OpenRlhf(), ["openrlhf.cli.train_sft"]),
    "openrlhf-ray": (OpenRlhf(), ["openrlhf.cli.train_ppo_ray"]),
}
KEYS = [
    *NOT_COUNTED,
    *(
        "base_model",
        "model",
        "model_name_or_path",
        "micro_batch_size",
        "sequence_len",
        "adapter",
        "rl",
        "deepspeed",
        "fsdp",
        "fsdp_config.version",
    ),
    *("bf16", "optimizer", "optim", "plugins", "stage", "pref_loss", "finetuning_type", "quantization_bit", "lora_target", "max_length"),
    *(
        "train_type",
        "rlhf_type",
        "tensor_model_parallel_size",
        "global_batch_size",
        "recompute_granularity",
        "gradient_checkpointing_kwargs",
    ),
    *(
        "actor_rollout_ref.model.path",
        "actor_rollout_ref.actor.strategy",
        "actor_rollout_ref.actor.fsdp_config.fsdp_size",
        "trainer.nnodes",
    ),
    *(
        "data.max_prompt_length",
        "algorithm.adv_estimator",
        "config-name",
        "config-path",
        "train.batch_size",
        "ds.zero_stage",
        "ds.lora.rank",
    ),
    *("critic.model.path", "actor_rollout_ref.rollout.n", "actor_rollout_ref.actor.ppo_micro_batch_size", "vllm.num_engines", "bf16"),
]
VALUES = st.one_of(
    st.sampled_from(
        [
            "true",
            "false",
            "auto",
            "0",
            "-1",
            "8",
            "1e9",
            "1e400",
            "nan",
            "[a,b]",
            "{",
            '{"zero_optimization": 3}',
            "zero3",
            "fsdp2",
            "a.yaml",
        ]
    ),
    st.text(max_size=30),
    st.integers().map(str),
)


@pytest.mark.parametrize("name", HEADS)
@given(data=st.data())
def test_no_command_makes_a_reader_raise(name: str, data: st.DataObject) -> None:
    """Known keys with any value, as flags and as overrides, over a file of the same."""
    reader, head = HEADS[name]
    pairs = st.lists(st.tuples(st.sampled_from(KEYS), VALUES, st.sampled_from(["--{}={}", "{}={}", "--{}|{}"])), max_size=12)
    given_words = [word for key, value, form in data.draw(pairs) for word in form.format(key, value).split("|")]
    lines = "\n".join(f"{key}: {value}" for key, value, _ in data.draw(pairs))
    launch = Launch(words=[stated(word) for word in [*head, *given_words]], files=GivenFiles({"a.yaml": lines, "zero3": "[1"}))
    assert reader.recognises(launch)
    found = reader.read(launch)
    assert all(str(each.place) for each in found.fields.values())


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.recursive(VALUES | st.integers() | st.none() | st.booleans(), lambda inner: st.lists(inner, max_size=3), max_leaves=4),
        max_size=10,
    )
)
def test_no_config_makes_a_reader_raise(tree: dict[str, object]) -> None:
    """Known keys with values of any shape."""
    try:
        config = read_settings(json.dumps(tree), "a.json")
    except FileError:
        return
    for reader, _ in HEADS.values():
        launch = Launch(config=config, config_file="a.json")
        if reader.recognises(launch):
            read_soundly(reader, launch)


def test_a_reader_does_not_call_what_is_not_its_own() -> None:
    """An empty launch, another program and another config are nobody's here."""
    for launch in (
        Launch(),
        Launch(words=[stated("train.py")]),
        Launch(config=read_settings("model: x\n", "a.yaml"), config_file="a.yaml"),
    ):
        assert not any(reader.recognises(launch) for reader, _ in HEADS.values())


def test_names_of_optimizers_are_the_services() -> None:
    """Every row names an optimizer that a job document may have."""
    assert {name for name, _ in OPTIMIZERS.values()} <= set(CHOICES["optimizer.name"])
    assert {each for _, each in OPTIMIZERS.values() if each} <= set(CHOICES["optimizer.implementation"])
