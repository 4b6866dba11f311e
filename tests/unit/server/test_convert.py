"""TrainingJob message to Job."""

from __future__ import annotations

import dataclasses
import math

import pytest
from google.protobuf.descriptor import Descriptor

from peakgate.memory.job import Job, Model, Operation
from peakgate.server.convert import job_from_message
from peakgate.server.errors import PeakgateError
from peakgate.v1.training_job_pb2 import TrainingJob


def a_message() -> TrainingJob:
    """The least that is a job."""
    message = TrainingJob(name="a job")
    message.model.preset = "gpt2"
    return message


def test_what_is_not_stated_is_none_or_empty() -> None:
    """The message's defaults do not leak: an unset number is not 0."""
    want_job = Job(name="a job", model=Model(preset="gpt2"))
    assert job_from_message(a_message()) == want_job


def test_a_stated_zero_is_kept() -> None:
    """0 and false are statements."""
    message = a_message()
    message.evaluate.micro_batch_size = 0
    message.batch.packed = False
    job = job_from_message(message)
    assert job.evaluate.micro_batch_size == 0
    assert job.batch.packed is False


def test_lora_is_present_when_stated_even_empty() -> None:
    """`lora: {}` asks for adapters with every default."""
    message = a_message()
    message.lora.SetInParent()
    assert job_from_message(message).lora is not None
    assert job_from_message(a_message()).lora is None


def test_a_config_is_a_plain_dict_with_integers() -> None:
    """Doubles of the wire that are integral are integers in a config.json."""
    message = a_message()
    message.model.hf_config.update({"hidden_size": 4096, "eps": 1e-5, "tied": True, "rope": {"type": None}, "sizes": [1, 2.5]})
    want_config = {"hidden_size": 4096, "eps": 1e-5, "tied": True, "rope": {"type": None}, "sizes": [1, 2.5]}
    config = job_from_message(message).model.hf_config
    assert config == want_config
    assert config is not None
    assert isinstance(config["hidden_size"], int)


def test_lists_of_messages_are_tuples_of_dataclasses() -> None:
    """Operations of a plain network."""
    message = a_message()
    message.model.operations.input.extend([3, 32, 32])
    message.model.operations.layers.add(op="linear", out=10)
    operations = job_from_message(message).model.operations
    assert operations is not None
    assert operations.input == (3, 32, 32)
    assert operations.layers == (Operation(op="linear", out=10),)


def test_a_missing_model_is_refused() -> None:
    """The path and the six kinds are named."""
    with pytest.raises(PeakgateError) as caught:
        job_from_message(TrainingJob(name="empty"))
    assert [each.field for each in caught.value.fields] == ["model"]
    assert "hf_config" in caught.value.fields[0].description


def test_every_number_that_is_not_finite_is_named() -> None:
    """In plain fields, in repeated ones and inside a config."""
    message = a_message()
    message.dropout.hidden = math.nan
    message.checkpointing.budget = math.inf
    message.model.hf_config.update({"deep": [0.0, {"x": 1.0}]})
    message.model.hf_config.fields["deep"].list_value.values[1].struct_value.fields["x"].number_value = -math.inf
    with pytest.raises(PeakgateError) as caught:
        job_from_message(message)
    want_fields = {"dropout.hidden", "checkpointing.budget", "model.hf_config.deep[1].x"}
    assert {each.field for each in caught.value.fields} == want_fields


def test_every_field_of_the_message_has_a_place() -> None:
    """The dataclasses mirror the message, level by level: a field that is added on one side only is noticed."""

    def compare(kind: type, descriptor: Descriptor, path: str) -> None:
        want_names = {field.name for field in descriptor.fields}
        assert {field.name for field in dataclasses.fields(kind)} == want_names, path

    compare(Job, TrainingJob.DESCRIPTOR, "")
    job = job_from_message(a_message())
    for field in TrainingJob.DESCRIPTOR.fields:
        value = getattr(job, field.name)
        if field.message_type is not None and dataclasses.is_dataclass(value):
            compare(type(value), field.message_type, field.name)
