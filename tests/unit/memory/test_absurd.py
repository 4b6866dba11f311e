"""Sizes that no job has are refused at once, with their field."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.unit.memory.builders import a_job, a_transformer

from peakgate.memory.change import Value
from peakgate.memory.job import Job, Lora, Method, Model
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError


def refused_field(job: Job) -> str:
    """The field of the one error, which comes before anything is walked."""
    begin = time.process_time()
    with pytest.raises(JobError) as caught:
        predict(job)
    assert time.process_time() - begin < 0.5
    (field,) = caught.value.fields
    return field.field


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"method.name": "dpo", "batch.micro_batch_size": 100_000}, "batch.micro_batch_size"),
        ({"method.name": "dpo", "method.sequences_per_example": 1_000_000}, "method.sequences_per_example"),
        ({"method.name": "grpo", "evaluate.micro_batch_size": 100_000}, "evaluate.micro_batch_size"),
        ({"framework.name": "litgpt", "batch.sequence_length": 1 << 27}, "batch.sequence_length"),
    ],
)
def test_a_loss_piece_by_piece_has_a_limit(changes: dict[str, Value], want: str) -> None:
    """One document must not keep a service busy for minutes."""
    assert refused_field(a_job(changes)) == want


def test_other_models_and_adapters_have_limits() -> None:
    """A critic is bound as the model is."""
    critic = Model(transformer=a_transformer("llama", layers=1_000_000_000))
    assert refused_field(replace(a_job(), method=Method(name="ppo", critic=critic))) == "method.critic.transformer.layers"
    assert refused_field(a_job(lora=Lora(rank=9 * 10**18))) == "lora.rank"


@pytest.mark.parametrize("block", ["olmo3", "clip", "gpt2"])
def test_a_block_without_experts_is_given_none(block: str) -> None:
    """Better refused than counted as another model."""
    experts = a_transformer(block, experts=8, experts_per_token=2)
    assert refused_field(a_job(model=experts)) == "model.transformer.experts"


def test_a_sequence_of_one_token_has_a_figure() -> None:
    """LitGPT's loss then has no position left, and still one chunk."""
    assert predict(a_job({"framework.name": "litgpt", "batch.sequence_length": 1, "loss.implementation": "full"})).allocated_bytes > 0
