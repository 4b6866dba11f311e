"""The second seed: measures, moments, techniques."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.memory.builders import category_bytes
from tests.unit.memory.seed_rows.registry import near, row
from tests.unit.memory.seeds import activations, states, textbook_job

from peakgate.calibration import Snapshot
from peakgate.memory.allocator import block_bytes
from peakgate.memory.capacity import capacity_of
from peakgate.memory.job import (
    Checkpointing,
    Framework,
    Job,
    Optimizer,
    Parallelism,
    Precision,
)
from peakgate.memory.predict import predict
from peakgate.server.subjects import subject_of


# ---- seed B: measures, moments, techniques
@row("s2-three-layers")
def _(*_: Any) -> None:
    """allocated <= reserved <= what nvidia-smi shows: three numbers."""
    p = predict(textbook_job(framework="huggingface", recipe="bf16"))
    assert p.live_bytes < p.allocated_bytes < p.reserved_bytes < p.device_bytes


@row("s2-lazy-adam", "s2-warmup")
def _(*_: Any) -> None:
    """Adam's moments appear at the first step: forward and backward pass on a card that the first step does not fit."""
    job = textbook_job(framework="huggingface", recipe="fp32", micro_batch=1, sequence=128)
    first, steady = predict(job).phase_peaks[1:5], predict(job).phase_peaks[5:]
    card = max(dict(first)[phase] for phase in ("forward", "loss", "backward"))
    assert next(phase for phase, size in predict(job).phase_peaks if size > card) == "optimizer"
    assert all(dict(first)[phase] <= dict(steady)[phase] for phase in dict(steady))
    assert dict(first)["forward"] < dict(steady)["forward"]


@row("s2-technique-map")
def _(*_: Any) -> None:
    """Each technique moves its own lines of the ledger."""
    base = textbook_job(framework="huggingface", recipe="fp32", layers=4, accumulation=1)
    plain = predict(base)

    def lines(job: Job) -> set[str]:
        after = predict(job)
        names = ("parameters", "gradients", "master_weights", "optimizer_states", "activations")
        return {name for name in names if category_bytes(after, name) < category_bytes(plain, name)}

    assert lines(replace(base, precision=Precision(recipe="bf16"))) == {"parameters", "optimizer_states", "activations"}
    assert lines(replace(base, batch=replace(base.batch, micro_batch_size=4, gradient_accumulation_steps=2))) == {"activations"}
    assert lines(replace(base, checkpointing=Checkpointing(mode="full"))) == {"activations"}
    assert lines(replace(base, attention=replace(base.attention, implementation="flash"))) == {"activations"}
    ddp = replace(base, parallelism=Parallelism(world_size=8, sharding="ddp"))
    assert lines(ddp) == set()
    assert "optimizer_states" in lines(replace(base, parallelism=Parallelism(world_size=8, sharding="zero1")))
    assert {"parameters", "optimizer_states"} <= lines(replace(base, parallelism=Parallelism(world_size=8, sharding="fsdp")))
    assert lines(replace(base, optimizer=Optimizer(name="adamw-8bit", implementation="fused"))) == {"optimizer_states"}
    assert "activations" in lines(replace(base, parallelism=Parallelism(world_size=2, tensor=2, sequence_parallel=True)))


@row("s2-lower-precision")
def _(*_: Any) -> None:
    """Lower precision lowers states and activations."""
    fp32, bf16 = (predict(textbook_job(framework="huggingface", recipe=recipe, attention="flash")) for recipe in ("fp32", "bf16"))
    assert states(bf16) < states(fp32)
    assert activations(bf16) < activations(fp32)


@row("s2-allocated-cube")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """torch.randn(1000, 1000, 1000): a block of its own that is not rounded up further than 512 bytes."""
    near(block_bytes(4 * 1000**3) / 2**20, expect["mib"], tolerance)


@row("s2-minigpt-trace")
def _(*_: Any) -> None:
    """A small GPT's step, phase by phase: parameters first, activations rise, gradients come, moments stay."""
    job = replace(
        textbook_job(layers=2, hidden=64, heads=4, vocabulary=1000, micro_batch=4, sequence=32, framework="huggingface", recipe="fp32"),
        framework=Framework(name="torch"),
    )
    timeline = predict(job).timeline
    forward = [point.allocated_bytes for point in timeline if point.phase == "forward"]
    assert forward == sorted(forward)
    assert forward[-1] > forward[0]
    peaks = predict(job).phase_peaks
    assert peaks[0][0] == "load"
    assert peaks[0][1] < dict(peaks[1:5])["forward"] < dict(peaks[5:])["forward"]
    assert dict(peaks[1:5])["optimizer"] > dict(peaks[1:5])["forward"]


@row("s2-which-category")
def _(*_: Any) -> None:
    """The largest line of a job that does not fit is its first word: here the activations."""
    p = predict(textbook_job())
    assert max(p.ledger, key=lambda line: line.bytes).category == "activations"


@row("s1-keep-free")
def _(*_: Any) -> None:
    """Instead of 10 to 20 % of the card, a learned bound above what is required."""
    job = textbook_job(framework="huggingface", recipe="bf16")
    subject = subject_of(predict(job), job, capacity_of(job))
    bound = Snapshot().bound(subject, coverage=0.95).bound_bytes
    assert subject.required_bytes < bound < 1.2 * subject.required_bytes


@row("s2-cuda-graph-pools")
def _(*_: Any) -> None:
    """Pools of CUDA graphs are part of runtime memory: a job that states them is never admitted as if they were free."""
    job = replace(textbook_job(), framework=Framework(name="textbook", cuda_graphs="full-iteration"))
    assert any("CUDA graphs" in reason for reason in predict(job).undecided)
