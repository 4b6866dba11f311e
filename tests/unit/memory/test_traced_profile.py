"""Profiles of traced steps: reading what comes from outside, and the prediction from it."""

from __future__ import annotations

import base64
import zlib

import pytest
from tests.unit.memory.builders import job_of

from peakgate.memory.favourable import favourable
from peakgate.memory.job import Job
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError

MIB = 1 << 20
WORKSPACES = 2 * 8_519_680


def packed(words: str) -> str:
    """Words as a profile holds them."""
    return base64.b64encode(zlib.compress(words.encode())).decode()


def a_profile(**changes: object) -> dict[str, object]:
    """A step of one weight of 4 MiB: 6 MiB kept, 2 MiB of temporaries, a gradient, 8 MiB in the optimizer."""
    step = f"forward a{6 * MIB} t{2 * MIB} -1 loss t{MIB} backward g{4 * MIB} -4 -2 optimizer t{8 * MIB} -1 -2"
    return {
        "version": 1,
        "factory": "train:make",
        "torch": "2.13.0",
        "dtype": "bfloat16",
        "batch_size": 4,
        "optimizer": {"name": "adamw", "implementation": "foreach"},
        "gradient_accumulation_steps": 1,
        "parameters": 2 * MIB,
        "trainable_parameters": 2 * MIB,
        "gradient_bytes": 4 * MIB,
        "saved_bytes": 6 * MIB,
        "resident": packed(f"p{4 * MIB} i1000 o{4 * MIB} o{4 * MIB}"),
        "events": packed(step),
        **changes,
    }


def a_traced_job(profile: object = None, **fields: object) -> Job:
    """A job whose model is a profile."""
    return job_of({"model": {"profile": profile or a_profile()}, "gpu": {"type": "a100-40gb"}, **fields})


def test_a_step_is_played_in_bytes_and_in_blocks() -> None:
    """live: the tensors; allocated: their blocks of 512 bytes and the library workspaces; the peak and its phase follow from the order."""
    answer = predict(a_traced_job())
    resident = 12 * MIB + 1000
    assert answer.live_bytes == resident + (4 + 8) * MIB
    assert answer.allocated_bytes == 12 * MIB + 1024 + 12 * MIB + WORKSPACES
    assert answer.peak_phase == "optimizer"
    assert answer.parameters == 2 * MIB
    assert answer.saved_activation_bytes_per_layer == 6 * MIB
    assert answer.undecided == ()


def test_the_ledger_sums_to_the_device_and_the_order_holds() -> None:
    """live ≤ allocated ≤ required ≤ reserved, the context on top."""
    answer = predict(a_traced_job())
    assert sum(line.bytes for line in answer.ledger) == answer.device_bytes
    context = answer.device_bytes - answer.reserved_bytes
    assert answer.live_bytes <= answer.allocated_bytes <= answer.required_bytes - context <= answer.reserved_bytes
    assert dict(answer.phase_peaks)["forward"] < dict(answer.phase_peaks)["optimizer"]


def test_data_parallel_ranks_hold_buckets() -> None:
    """DDP's buckets are as large as the gradients (torch/nn/parallel/distributed.py)."""
    one, two = predict(a_traced_job(gpu={"type": "a100-40gb", "count": 1})), predict(a_traced_job(gpu={"type": "a100-40gb", "count": 2}))
    assert two.live_bytes - one.live_bytes == 4 * MIB
    assert two.group == "profile/ddp/bfloat16"


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"batch": {"micro_batch_size": 8}}, "batch.micro_batch_size: 8 is stated, the profile was traced with 4"),
        ({"batch": {"gradient_accumulation_steps": 8}}, "gradient_accumulation_steps"),
        ({"optimizer": {"name": "sgd"}}, "optimizer.name: sgd is stated"),
        ({"optimizer": {"implementation": "fused"}}, "optimizer.implementation"),
        ({"precision": {"recipe": "fp32"}}, "precision.recipe"),
        ({"precision": {"recipe": "amp-bf16"}}, "precision.recipe"),
        ({"checkpointing": {"mode": "full"}}, "part of the traced model"),
        ({"lora": {"rank": 8}}, "part of the traced model"),
        ({"parallelism": {"sharding": "fsdp", "world_size": 2}}, "parallelism.sharding"),
        ({"parallelism": {"tensor": 2, "world_size": 2}}, "counted whole"),
        ({"method": {"name": "dpo"}}, "only the traced step"),
        ({"batch": {"micro_batch_size": 4, "gradient_accumulation_steps": 1}, "precision": {"recipe": "bf16"}}, ""),
    ],
)
def test_what_the_job_states_otherwise_leaves_it_undecided(fields: dict[str, object], want: str) -> None:
    """A trace fixes batch, optimizer and formats: another one needs another trace."""
    undecided = " ".join(predict(a_traced_job(**fields)).undecided)
    assert want in undecided
    assert bool(undecided) == bool(want)


def test_a_traced_step_leaves_nothing_open() -> None:
    """A rejection of it stands."""
    assert favourable(a_traced_job()) == ()


@pytest.mark.parametrize(
    ("changes", "want_field", "want_text"),
    [
        ({"version": 2}, "version", "reads 1"),
        ({"optimizer": None}, "optimizer", "is missing"),
        ({"parameters": -1}, "parameters", "whole number"),
        ({"parameters": 1.5}, "parameters", "whole number"),
        ({"batch_size": True}, "batch_size", "whole number"),
        ({"torch": None}, "torch", "no text"),
        ({"events": "%%%"}, "events", "cannot be read"),
        ({"events": base64.b64encode(b"no zlib").decode()}, "events", "cannot be read"),
        ({"events": base64.b64encode(zlib.compress(b"forward t5")[:-6]).decode()}, "events", "cut off"),
        ({"events": base64.b64encode(zlib.compress(bytes(1 << 27))).decode()}, "events", "longer than"),
        ({"events": packed("forward x5")}, "events", "cannot read 'x5'"),
        ({"events": packed("forward t" + "9" * 30)}, "events", "cannot read"),
        ({"events": packed("forward t5 -1 -1")}, "events", "not alive"),
        ({"events": packed("forward -1")}, "events", "not alive"),
        ({"events": packed("t5 forward")}, "events", "begins with forward"),
        ({"events": packed("forward p5")}, "events", "resident"),
        ({"resident": packed("forward")}, "resident", "no resident"),
    ],
)
def test_a_profile_that_is_none_is_named_by_its_field(changes: dict[str, object], want_field: str, want_text: str) -> None:
    """It comes from a file that anybody may have written: no crash, no bomb, one clear word."""
    with pytest.raises(JobError) as caught:
        predict(a_traced_job(a_profile(**changes)))
    (error,) = caught.value.fields
    assert error.field == f"model.profile.{want_field}"
    assert want_text in error.description
