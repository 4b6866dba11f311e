"""What the calibration is told of a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.server.attempts import SUBJECT

from peakgate.calibration import Observation
from peakgate.memory.job import Framework, Gpu, Job, Node, Parallelism
from peakgate.server.convert import job_from_message
from peakgate.server.memory import memory_model
from peakgate.server.subjects import (
    framework_key,
    group_key,
    observation_from,
    observation_text,
    scaled,
    subject_from,
    subject_of,
    subject_text,
)
from peakgate.v1.document import parse_job

GB = 1_000_000_000
AJob = Callable[..., Job]

DOCUMENT: dict[str, object] = {
    "model": {
        "transformer": {"block": "llama", "layers": 8, "hidden_size": 1024, "heads": 8, "ffn_hidden_size": 4096, "vocab_size": 32000}
    },
    "batch": {"micro_batch_size": 4, "sequence_length": 1024},
    "precision": {"recipe": "bf16"},
    "framework": {"name": "huggingface", "version": "4.55.2", "torch": "2.7.1", "cuda": "12.6"},
    "parallelism": {"sharding": "fsdp", "world_size": 8},
    "gpu": {"type": "h100-80gb"},
}


def a_real_job(**parts: object) -> Job:
    """A small model under FSDP on one node."""
    return job_from_message(parse_job(DOCUMENT | parts))


def test_a_subject_has_the_figures_that_a_residual_depends_on() -> None:
    """The ledger's activations and states at the peak; the prior is what is required beyond the blocks in use."""
    memory, job = memory_model(), a_real_job()
    prediction, capacity = memory.predict(job), memory.capacity_of(job)
    subject = subject_of(prediction, job, capacity, user="c/7")
    lines = {line.category: 0 for line in prediction.ledger}
    for line in prediction.ledger:
        lines[line.category] += line.bytes
    assert capacity is not None
    assert (subject.card_bytes, subject.user, subject.version) == (capacity.total_bytes, "c/7", "torch 2.7.1 cuda 12.6")
    assert (subject.required_bytes, subject.device_bytes) == (prediction.required_bytes, prediction.device_bytes)
    assert subject.required_bytes - subject.runtime_bytes == prediction.allocated_bytes
    assert lines["runtime"] <= subject.runtime_bytes <= lines["runtime"] + lines["fragmentation"]
    assert subject.activation_bytes == lines.get("activations", 0) + lines.get("logits", 0)
    assert subject.state_bytes == sum(lines.get(name, 0) for name in ("parameters", "gradients", "master_weights", "optimizer_states"))
    assert subject.state_bytes > 0


@pytest.mark.parametrize(
    ("kind", "framework", "want"),
    [
        ("huggingface/fsdp/bfloat16", Framework(version="4.55.2"), "huggingface-4.55/fsdp"),
        ("huggingface/ddp/bfloat16", Framework(), "huggingface/ddp"),
        ("huggingface/ddp/bfloat16", Framework(version="main"), "huggingface/ddp"),
        ("megatron/none/bfloat16", Framework(version="9" * 40), f"megatron-{'9' * 16}/none"),
        ("textbook/none/float32", Framework(version="1.0"), "textbook"),
    ],
)
def test_a_framework_is_its_name_minor_version_and_sharding(kind: str, framework: Framework, want: str) -> None:
    """What cannot be read as a version is none; the textbook's accounting is one thing."""
    assert framework_key(kind, Job(framework=framework)) == want


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, "a100-40gb/torch/fsdp/one node"),
        ({"parallelism": Parallelism(world_size=16)}, "a100-40gb/torch/fsdp/several nodes"),
        ({"parallelism": Parallelism(world_size=16), "node": Node(gpus=16)}, "a100-40gb/torch/fsdp/one node"),
        ({"gpu": Gpu(type="a100-40gb", count=9)}, "a100-40gb/torch/fsdp/several nodes"),
        ({"framework": Framework(expandable_segments=True)}, "a100-40gb/torch/fsdp/one node/expandable segments"),
        ({"framework": Framework(compile=True)}, "a100-40gb/torch/fsdp/one node/compiled"),
        ({"gpu": Gpu(memory_bytes=40 * GB)}, "unknown/torch/fsdp/one node"),
    ],
)
def test_a_group_is_what_moves_the_runtime(changes: dict[str, object], want: str) -> None:
    """The card, the framework, whether it leaves its node, and two switches."""
    job = replace(Job(gpu=Gpu(type="a100-40gb")), **changes)  # type: ignore[arg-type]  # the names are those of the job
    assert group_key("torch/fsdp/bfloat16", job, memory_model().capacity_of(job)) == want


def test_a_switch_that_is_not_stated_is_as_the_framework_has_it() -> None:
    """torchtitan turns expandable segments on."""
    assert group_key("torchtitan/fsdp/bfloat16", Job(), None).endswith("/expandable segments")
    off = Job(framework=Framework(expandable_segments=False))
    assert group_key("torchtitan/fsdp/bfloat16", off, None) == "unknown/torchtitan/fsdp/one node"


def test_a_scaled_subject_keeps_its_runtime() -> None:
    """What is counted grows in proportion."""
    subject = replace(SUBJECT, required_bytes=50, device_bytes=58, runtime_bytes=10, activation_bytes=20, state_bytes=16)
    twice = scaled(subject, required_bytes=90)
    assert (twice.required_bytes, twice.runtime_bytes, twice.activation_bytes, twice.state_bytes) == (90, 10, 40, 32)
    assert scaled(subject, required_bytes=50) == subject
    assert scaled(subject, required_bytes=5).activation_bytes == 0


def test_texts_come_back_as_they_were() -> None:
    """To the last bit of a time."""
    observation = Observation(
        prediction="predictions/0/7/0",
        subject=replace(SUBJECT, user="c/1000", version="torch 2.7.1"),
        lower_bytes=1,
        upper_bytes=None,
        finished_at=1764520149.123457,
        received_at=1764520150.1,
        config="digest",
        has_statistics=True,
    )
    assert observation_from(observation_text(observation)) == observation
    assert subject_from(subject_text(SUBJECT)) == SUBJECT
