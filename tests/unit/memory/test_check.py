"""Bad jobs: one error that names every bad field, what is wrong with it, and what to do."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.unit.memory.builders import a_job, a_transformer

from peakgate.memory.change import Value
from peakgate.memory.check import check, world_of
from peakgate.memory.choices import CHOICES
from peakgate.memory.job import Batch, Job, Lora, Method, Model, Operation, Operations, Transformer
from peakgate.memory.prediction import JobError


def refused(job: Job) -> JobError:
    """The error of a job that is refused."""
    with pytest.raises(JobError) as caught:
        check(job)
    return caught.value


def problems(changes: dict[str, Value] | None = None, model: Transformer | Model | None = None, lora: Lora | None = None) -> dict[str, str]:
    """What is wrong, by field."""
    return {each.field: each.description for each in refused(a_job(changes, model=model, lora=lora)).fields}


def test_a_good_job_passes() -> None:
    """Nothing is wrong with the builders' job."""
    check(a_job())


def test_every_bad_field_is_in_one_error() -> None:
    """A word, a number, a share, a name, a size that does not divide and degrees that do not multiply: six fields, one error."""
    error = refused(
        a_job(
            {
                "optimizer.name": "adamm",
                "batch.sequence_length": -1,
                "dropout.hidden": 1.5,
                "gpu.type": "h100-80g",
                "parallelism.tensor": 4,
                "parallelism.world_size": 6,
            },
            model=a_transformer(hidden_size=65),
        )
    )
    assert error.reason == "FIELD_INVALID"
    assert {each.field for each in error.fields} == {
        "optimizer.name",
        "batch.sequence_length",
        "dropout.hidden",
        "gpu.type",
        "model.transformer.heads",
        "parallelism.world_size",
    }
    assert all(each.field in str(error) and each.description in str(error) for each in error.fields)


@pytest.mark.parametrize(
    ("changes", "model", "want_reason", "want_field"),
    [
        ({}, Model(), "FIELD_INVALID", "model"),
        ({}, Model(preset="gpt2", parameters=1), "FIELD_INVALID", "model"),
        ({}, Model(preset="llama-3.1-9b"), "MODEL_UNKNOWN", "model.preset"),
        ({"gpu.type": "h100-80g"}, None, "ACCELERATOR_UNKNOWN", "gpu.type"),
        ({"parallelism.tensor": 4, "parallelism.world_size": 6}, None, "PARALLELISM_MISMATCH", "parallelism.world_size"),
        ({"parallelism.world_size": 4, "gpu.count": 8}, None, "PARALLELISM_MISMATCH", "gpu.count"),
        ({"parallelism.world_size": 4, "parallelism.shard_degree": 3}, None, "PARALLELISM_MISMATCH", "parallelism.shard_degree"),
        ({"parallelism.world_size": 4, "parallelism.expert": 3}, None, "PARALLELISM_MISMATCH", "parallelism.expert"),
        ({"parallelism.tensor": 3}, None, "PARALLELISM_MISMATCH", "parallelism.tensor"),
        ({"parallelism.pipeline": 4}, None, "PARALLELISM_MISMATCH", "parallelism.pipeline"),
    ],
)
def test_the_reason_tells_what_kind_of_mistake_it_is(
    changes: dict[str, Value], model: Model | None, want_reason: str, want_field: str
) -> None:
    """One word a client can branch on, and the field."""
    error = refused(a_job(changes, model=model))
    assert error.reason == want_reason
    assert [each.field for each in error.fields] == [want_field]


@pytest.mark.parametrize(
    ("changes", "model", "want"),
    [
        ({"gpu.type": "h100-80g"}, None, "did you mean h100-80gb"),
        ({}, Model(preset="llama-3.1-8"), "did you mean llama-3.1-8b"),
        ({"optimizer.name": "adamm"}, None, "did you mean adam"),
        ({"parallelism.tensor": 4, "parallelism.world_size": 6}, None, "use 8"),
        ({}, Model(), "give one of preset, hf_config, transformer, operations, profile, parameters"),
        ({}, Model(preset="gpt2", parameters=1), "has 2 descriptions (preset, parameters): keep one"),
    ],
)
def test_the_remedy_is_told(changes: dict[str, Value], model: Model | None, want: str) -> None:
    """The nearest name, the next number, the choices."""
    assert want in str(refused(a_job(changes, model=model)))


@pytest.mark.parametrize("path", sorted(path for path in CHOICES if path.count(".") == 1 and path != "checkpointing.modules"))
def test_a_word_outside_its_table_is_refused(path: str) -> None:
    """Every choice of the contract is held, and the message lists the words."""
    lora = Lora() if path.startswith("lora") else None
    (description,) = problems({path: "nonsense"}, lora=lora).values()
    assert all(word in description for word in CHOICES[path])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.1])
def test_a_share_outside_0_to_1_is_refused(value: float) -> None:
    """NaN and infinity are no numbers at all."""
    assert set(problems({"dropout.attention": value, "dropout.hidden": value})) == {"dropout.attention", "dropout.hidden"}


@pytest.mark.parametrize(
    "path",
    [
        "batch.micro_batch_size",
        "batch.sequence_length",
        "batch.gradient_accumulation_steps",
        "batch.target_length",
        "parallelism.world_size",
        "parallelism.tensor",
        "parallelism.pipeline",
        "parallelism.context",
        "parallelism.expert",
        "gpu.count",
        "gpu.memory_bytes",
        "checkpointing.every",
        "checkpointing.layers",
        "node.gpus",
        "evaluate.micro_batch_size",
        "framework.zero.reduce_bucket_size",
    ],
)
@pytest.mark.parametrize("value", [-1, -(2**62)])
def test_a_negative_size_is_refused(path: str, value: int) -> None:
    """Its path and value are named."""
    assert str(value) in problems({path: value})[path]


@pytest.mark.parametrize("path", ["batch.gradient_accumulation_steps", "parallelism.world_size", "parallelism.tensor", "gpu.count"])
def test_zero_is_no_degree(path: str) -> None:
    """A group of no GPUs is a mistake."""
    assert "too small" in problems({path: 0})[path]


@pytest.mark.parametrize("path", ["batch.micro_batch_size", "batch.sequence_length", "gpu.memory_bytes", "batch.target_length"])
def test_zero_is_not_stated(path: str) -> None:
    """The contract's own example writes 0 for nothing."""
    check(a_job({path: 0}))


@pytest.mark.parametrize(
    "path",
    ["batch.micro_batch_size", "batch.sequence_length", "parallelism.world_size", "gpu.memory_bytes", "gpu.count", "checkpointing.every"],
)
def test_a_huge_size_is_absurd(path: str) -> None:
    """2^62 of anything is a mistake, not a job."""
    assert "absurd" in problems({path: 2**62})[path]


@pytest.mark.parametrize("size", ["layers", "hidden_size", "heads", "ffn_hidden_size", "vocab_size"])
@pytest.mark.parametrize("value", [-5, 2**40])
def test_sizes_of_a_config_have_the_same_limits(size: str, value: int) -> None:
    """A config.json is no way around a check; the message uses the config's own name."""
    names = {"layers": "num_hidden_layers", "heads": "num_attention_heads", "ffn_hidden_size": "intermediate_size"}
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 100}
    found = problems(model=Model(hf_config={**config, names.get(size, size): value}))
    assert str(value) in found[f"model.hf_config.{names.get(size, size)}"]


def test_shares_of_a_config_lie_between_0_and_1() -> None:
    """A dropout of -3 would be a negative number of bytes further on."""
    sizes = {"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8}
    found = problems(model=Model(hf_config={**sizes, "rotary_pct": -3, "hidden_dropout": 2}))
    assert set(found) == {"model.hf_config.rotary_pct", "model.hf_config.hidden_dropout"}


@pytest.mark.parametrize(
    ("model", "want_field"),
    [
        (Transformer(block="llama", layers=2, hidden_size=64), "heads"),
        (Transformer(block="llama", layers=2, heads=8), "hidden_size"),
        (Transformer(block="llama", hidden_size=64, heads=8), "layers"),
        (Transformer(layers=2, hidden_size=64, heads=8), "block"),
        (a_transformer(heads=7), "heads"),
        (a_transformer(kv_heads=3), "kv_heads"),
        (a_transformer("mixtral", experts_per_token=5), "experts_per_token"),
        (a_transformer("mixtral", experts_per_token=0), "experts_per_token"),
        (a_transformer("qwen3_moe", experts=0, experts_per_token=0), "experts"),
        (a_transformer(layers=2**20), "layers"),
    ],
)
def test_a_transformer_must_be_whole_and_agree_with_itself(model: Transformer, want_field: str) -> None:
    """Missing sizes, heads that do not divide, more experts a token than there are."""
    assert f"model.transformer.{want_field}" in problems(model=model)


def test_a_stated_head_width_frees_the_heads() -> None:
    """Gemma's and Qwen3's heads are wider than hidden over heads."""
    check(a_job(model=a_transformer(heads=7, kv_heads=7, head_dim=16)))


def test_the_layers_of_stages_must_sum() -> None:
    """Four numbers for two stages, and a wrong sum."""
    job = a_job({"parallelism.pipeline": 2, "parallelism.world_size": 2}, model=a_transformer(layers=4))
    for split in ((1, 1, 1, 1), (1, 2)):
        error = refused(replace(job, parallelism=replace(job.parallelism, stage_layers=split)))
        assert [each.field for each in error.fields] == ["parallelism.stage_layers"]
    check(replace(job, parallelism=replace(job.parallelism, stage_layers=(3, 1))))


def test_other_models_are_held_as_well() -> None:
    """An unknown critic and a teacher without a description."""
    error = refused(replace(a_job(), method=Method(critic=Model(preset="no-such-model"), teacher=Model())))
    assert {each.field for each in error.fields} == {"method.critic.preset", "method.teacher"}


def test_operations_are_held_as_well() -> None:
    """A negative width and a probability above 1 of a plain network."""
    bad = Operations(input=(-1,), layers=(Operation(op="linear", out=8),), loss="hinge")
    assert set(problems(model=Model(operations=bad))) == {"model.operations.input", "model.operations.loss"}


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, 1),
        ({"gpu.count": 16}, 16),
        ({"parallelism.world_size": 32}, 32),
        ({"parallelism.tensor": 2, "parallelism.pipeline": 3}, 6),
        ({"parallelism.tensor": 2, "parallelism.shard_degree": 4}, 8),
        ({"parallelism.context": 2, "parallelism.shard_degree": 4}, 4),
    ],
)
def test_the_world_is_stated_or_the_smallest_consistent_one(changes: dict[str, Value], want: int) -> None:
    """Contract section 1: world_size = gpu.count, else the smallest that the degrees allow."""
    assert world_of(a_job(changes)) == want


def test_more_tokens_than_learned_positions_are_refused() -> None:
    """GPT-2's table has 1024 rows; a cap says only that no sequence is longer."""
    job = Job(model=Model(preset="gpt2"), batch=Batch(micro_batch_size=1, sequence_length=4096))
    with pytest.raises(JobError) as caught:
        check(job)
    assert [error.field for error in caught.value.fields] == ["batch.sequence_length"]
    check(replace(job, batch=replace(job.batch, sequence_length_is="cap")))
