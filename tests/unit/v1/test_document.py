"""The job document: what is taken, what is refused, and that every bad field is named at once."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.v1.document import DocumentError, job_to_dict, parse_job, united

PUBLISHED_JOBS = Path(__file__).parents[2] / "golden/published_jobs.jsonl"
MODEL: dict[str, object] = {"transformer": {"block": "llama", "layers": 2, "hidden_size": 64, "heads": 4}}


def a_document(**fields: object) -> dict[str, object]:
    """A job document with a model, and what a test is about."""
    return {"model": MODEL, **fields}


def bad_fields(document: object) -> dict[str, str]:
    """Path to description of every field that is refused."""
    with pytest.raises(DocumentError) as raised:
        parse_job(document)  # type: ignore[arg-type]  # whatever a parser may return
    return dict(raised.value.fields)


def test_every_published_job_comes_back_as_it_was() -> None:
    """Parsing and writing the 231 published job documents loses nothing; a bare word for LoRA's targets becomes a list."""
    documents = [json.loads(line)["job"] for line in PUBLISHED_JOBS.read_text().splitlines()]
    assert len(documents) == 231
    for document in documents:
        lora = document.get("lora")
        want = dict(document)
        if isinstance(lora, dict) and isinstance(lora.get("targets"), str):
            want["lora"] = {**lora, "targets": [lora["targets"]]}
        assert job_to_dict(parse_job(document)) == want


def test_what_is_not_stated_stays_unset() -> None:
    """A zero that was stated differs from a field that was not; null is not stated."""
    job = parse_job(a_document(dropout={"hidden": 0.0, "attention": None}, lora=None))
    assert job.dropout.HasField("hidden")
    assert not job.dropout.HasField("attention")
    assert not job.HasField("lora")


def test_a_key_with_dots_is_a_path() -> None:
    """As a suggestion writes it; it wins over the block that it is pasted behind, and leaves the rest of it alone."""
    blocks = a_document(batch={"micro_batch_size": 8, "sequence_length": 64}, parallelism={"tensor": 2})
    job = parse_job({**blocks, "batch.micro_batch_size": 4, "framework.megatron.cross_entropy_fusion": True})
    assert (job.batch.micro_batch_size, job.batch.sequence_length, job.parallelism.tensor) == (4, 64, 2)
    assert job.framework.megatron.cross_entropy_fusion


@pytest.mark.parametrize(
    ("document", "want_path"),
    [
        (a_document(**{"batch.micro_batch": 4}), "batch.micro_batch"),
        (a_document(name="a", **{"name.first": "b"}), "name.first"),
        (a_document(**{"attention.implementation.kind": "flash"}), "attention.implementation"),
    ],
)
def test_a_path_that_is_no_field_is_named(document: dict[str, object], want_path: str) -> None:
    """As any unknown key is."""
    assert want_path in bad_fields(document)


def test_an_empty_mapping_is_stated() -> None:
    """`lora: {}` asks for LoRA with its defaults."""
    assert parse_job(a_document(lora={})).HasField("lora")


def test_short_forms() -> None:
    """A bare word stands for a generation mode and for the targets of LoRA."""
    job = parse_job(a_document(method={"generation": "none"}, lora={"targets": "all-linear"}))
    assert job.method.generation.mode == "none"
    assert list(job.lora.targets) == ["all-linear"]


def test_a_whole_number_may_be_written_with_a_point() -> None:
    """8192.0 is a sequence length, 8192.5 and "8192" are not."""
    assert parse_job(a_document(batch={"sequence_length": 8192.0})).batch.sequence_length == 8192
    assert "whole number" in bad_fields(a_document(batch={"sequence_length": 8192.5}))["batch.sequence_length"]
    assert "whole number" in bad_fields(a_document(batch={"sequence_length": "8192"}))["batch.sequence_length"]


def test_a_config_keeps_its_numbers() -> None:
    """The content of a config.json comes back with ints as ints, nested lists and nulls included."""
    config = {"model_type": "llama", "hidden_size": 4096, "rope_theta": 500000.5, "eos": [1, 2], "scaling": {"factor": 8.0}, "bias": None}
    job = parse_job({"model": {"hf_config": config}})
    assert job_to_dict(job)["model"] == {"hf_config": {**config, "scaling": {"factor": 8}}}


def test_all_bad_fields_are_named_at_once() -> None:
    """One error lists an unknown key, a wrong type, a huge integer and a number that is none, each by its path."""
    found = bad_fields(
        {
            "model": {"transformer": {"block": "llama", "hiden_size": 64, "layers": True, "heads": 2**70}},
            "dropout": {"hidden": math.nan, "attention": math.inf},
            "framework": {"torch": 2.10},
            "gpus": 8,
            "lora": {"targets": [1]},
        }
    )
    assert set(found) == {
        "model.transformer.hiden_size",
        "model.transformer.layers",
        "model.transformer.heads",
        "dropout.hidden",
        "dropout.attention",
        "framework.torch",
        "gpus",
        "lora.targets[0]",
    }
    assert "did you mean hidden_size?" in found["model.transformer.hiden_size"]
    assert "did you mean gpu?" in found["gpus"]
    assert "quotes" in found["framework.torch"]


@pytest.mark.parametrize("document", [{}, {"model": None}, {"name": "x"}])
def test_a_missing_model_is_named(document: dict[str, object]) -> None:
    """Without a model the error says which kinds there are."""
    assert "needs exactly one of preset, hf_config" in bad_fields(document)["model"]


def test_two_models_are_refused() -> None:
    """Two kinds of model in one document contradict each other."""
    assert "states preset and parameters" in bad_fields({"model": {"preset": "x", "parameters": 7}})["model"]


def test_two_models_of_a_critic_are_refused() -> None:
    """The rule holds for every model in the document."""
    assert "method.critic" in bad_fields(a_document(method={"critic": {"preset": "x", "parameters": 7}}))


@pytest.mark.parametrize("document", [None, [], "text", 7])
def test_a_document_that_is_no_mapping_is_refused(document: object) -> None:
    """A list, a text or nothing is no job."""
    assert "needs a mapping" in bad_fields(document)["job"]


@pytest.mark.parametrize(
    ("value", "want_path"),
    [({"hf_config": {"a": [1, {"b": 10**400}]}}, "model.hf_config.a[1].b"), ({"hf_config": {1: 2}}, "model.hf_config.1")],
)
def test_bad_values_inside_a_config_are_named(value: dict[str, object], want_path: str) -> None:
    """An integer beyond every float and a key that is no text are found at any depth."""
    assert want_path in bad_fields({"model": value})


def test_a_bottomless_config_is_refused() -> None:
    """Nesting that no config has ends with an error, not with the interpreter's stack."""
    bottom: dict[str, object] = {}
    config = bottom
    for _ in range(200):
        config = {"deeper": config}
    assert any("nested deeper" in description for description in bad_fields({"model": {"hf_config": config}}).values())


def test_half_a_surrogate_is_refused() -> None:
    """Text that UTF-8 cannot hold is an error of the document, not a crash."""
    assert "surrogate" in bad_fields(a_document(name="\ud800"))["name"]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["model", "preset", "lora", "hf_config"]), inner),
)


@given(JUNK)
def test_any_data_gives_a_job_or_a_document_error(data: object) -> None:
    """Whatever a parser may return is taken or refused; nothing else is raised, and what is taken comes back the same twice."""
    try:
        job = parse_job(data)  # type: ignore[arg-type]  # whatever a parser may return
    except DocumentError:
        return
    assert parse_job(job_to_dict(job)) == job


def test_a_refused_document_holds_what_could_be_read() -> None:
    """For those who check its meaning; a number that could not be read stands as one that no field takes, never as a default."""
    document = a_document(parallelism={"tensor": "two", "pipeline": 2}, gpus=8, attention={"implementation": "flsh"})
    with pytest.raises(DocumentError) as raised:
        parse_job(document)
    job = raised.value.job
    assert (job.parallelism.tensor, job.parallelism.pipeline, job.attention.implementation) == (-1, 2, "flsh")


def test_two_checks_of_one_document_name_a_field_once() -> None:
    """What lies at, above or below a field that is named already follows from it; a neighbour with a longer name does not."""
    first = [("model.preset", "a"), ("batch[1]", "b")]
    more = [("model", "x"), ("batch[1].size", "x"), ("model.preset_2", "c"), ("batch[11]", "d")]
    assert united(first, more) == (*first, *more[2:])
