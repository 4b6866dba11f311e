"""What a job does not train."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.accuracy import Json, number, rows
from tests.unit.memory.builders import a_job, a_transformer, job_of, plan_of

from peakgate.memory.change import Value
from peakgate.memory.frozen import LAYER, PARTS, WORDS, read_frozen
from peakgate.memory.job import Job, Transformer
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError, Prediction
from peakgate.memory.stretches import stretches

TRACED = rows("traced_frozen")


def frozen(names: tuple[str, ...], changes: dict[str, Value] | None = None, model: Transformer | None = None) -> Job:
    """A job whose named parts are not trained."""
    return replace(a_job(changes, model=model), frozen=names)


def parameters(answer: Prediction) -> tuple[int, int]:
    """(all, trained)."""
    return answer.parameters, answer.trainable_parameters


@pytest.mark.parametrize("row", TRACED, ids=[f"{index}-{row['architecture']}" for index, row in enumerate(TRACED)])
def test_a_traced_model_trains_what_the_row_says(row: Json) -> None:
    """The counts of trained weights; the peaks are held with those of the other traced rows."""
    answer = predict(job_of(row["job"]))
    assert parameters(answer) == (number(row, "parameters"), number(row, "trainable"))


@pytest.mark.parametrize("name", ["embed_tokens", "model.embed_tokens", "transformer.wte", "Embeddings"])
def test_a_part_has_its_names_in_model_code(name: str) -> None:
    """A prefix and capitals do not matter."""
    assert read_frozen((name,)).parts == {"embeddings"}


def test_layers_go_by_number() -> None:
    """One, a range, or all."""
    assert read_frozen(("layers.3", "model.layers.5-7", "h.9")).layers == {3, 5, 6, 7, 9}
    assert read_frozen(("layers",)).parts == {"layers"}
    assert LAYER.match("layers.x") is None


@pytest.mark.parametrize(
    ("name", "want"),
    [("visual", "no part of a model"), ("layers.3", "3 layers"), ("layers.0-3", "3 layers"), ("encoder", "one stack"), ("", "no part")],
)
def test_an_unknown_name_is_refused(name: str, want: str) -> None:
    """The error names the field, and what may be written."""
    with pytest.raises(JobError) as error:
        predict(frozen((name,)))
    (field,) = error.value.fields
    assert field.field == "frozen"
    assert want in field.description


def test_a_words_part_is_unique() -> None:
    """No word means two parts."""
    assert len(WORDS) == sum(len(words) for words in PARTS.values())


def test_a_tied_head_is_the_embedding() -> None:
    """One weight with two names."""
    tied = a_transformer("llama", tied_embeddings=True)
    head, embedding = (predict(frozen((name,), model=tied)) for name in ("lm_head", "embed_tokens"))
    assert parameters(head) == parameters(embedding)


def test_an_encoder_is_frozen_whole() -> None:
    """With what stands in front of it; the decoder trains on."""
    model = a_transformer("whisper")
    whole, half = predict(a_job(model=model)), predict(frozen(("encoder",), model=model))
    other = predict(frozen(("decoder",), model=model))
    assert half.trainable_parameters < whole.trainable_parameters
    assert half.trainable_parameters + other.trainable_parameters == whole.trainable_parameters


def test_frozen_layers_stand_by_themselves() -> None:
    """Runs of trained and frozen layers are walked apart."""
    plan = plan_of(frozen(("layers.0-4",), model=a_transformer(layers=9)))
    assert sum(each.times for each in stretches(plan, 9) if each.frozen) == 5
    assert sum(each.times for each in stretches(plan, 9)) == 9


def test_what_is_not_trained_has_no_states() -> None:
    """Gradients and optimizer states of the rest alone."""
    whole, part = predict(a_job()), predict(frozen(("mlp", "attention")))
    assert part.states_bytes < whole.states_bytes
    assert part.parameters == whole.parameters


def test_a_model_that_trains_nothing_is_undecided() -> None:
    """No step can be judged."""
    assert any(reason.startswith("frozen") for reason in predict(frozen(("backbone", "head"))).undecided)


@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"])
@pytest.mark.parametrize("version", [1, 2])
def test_frozen_layers_shard(sharding: str, version: int) -> None:
    """Gathered in forward, without a gradient to reduce."""
    changes: dict[str, Value] = {
        "parallelism.sharding": sharding,
        "parallelism.world_size": 4,
        "framework.fsdp.version": version,
        "batch.gradient_accumulation_steps": 2,
    }
    names = ("embed_tokens", "layers.0-1")
    answer, whole = predict(frozen(names, changes, a_transformer(layers=5))), predict(a_job(changes, model=a_transformer(layers=5)))
    assert answer.allocated_bytes <= whole.allocated_bytes
    assert predict(frozen(names, changes, a_transformer(layers=5)), exact=True).allocated_bytes == answer.allocated_bytes
