"""Jobs in the terms of the lesson: its 1.3B model, and variations of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar

from peakgate.memory.change import Value, with_changes
from peakgate.memory.check import check, world_of
from peakgate.memory.job import Batch, Framework, Gpu, Job, Model, Transformer
from peakgate.memory.model import describe
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.resolve import resolve

T = TypeVar("T")

MODES: dict[str, tuple[tuple[str, Value], ...]] = {
    "baseline": (("attention.implementation", "eager"), ("checkpointing.mode", "none")),
    "flash": (("attention.implementation", "flash"), ("checkpointing.mode", "none")),
    "selective": (("attention.implementation", "eager"), ("checkpointing.mode", "selective")),
    "full": (("attention.implementation", "eager"), ("checkpointing.mode", "full")),
    "flash-full": (("attention.implementation", "flash"), ("checkpointing.mode", "full")),
}
"""What a job says in each mode (Lesson 6, section 3, "What changes the count"; section 4, step 7 for the last)."""

MLP_RATIO = {"gpt": Fraction(4), "llama": Fraction(8, 3)}
"""Width of the MLP over h (Lesson 6, section 3, "Parameters")."""


def lesson_job(
    *,
    s: int = 2048,
    b: int = 8,
    h: int = 2048,
    a: int = 16,
    L: int = 24,
    V: int = 50257,
    mode: str = "baseline",
    style: str = "gpt",
    f: int | None = None,
    kv_heads: int | None = None,
    tied: bool | None = None,
    positions: int = 0,
) -> Job:
    """The 1.3B model of Lesson 6, section 4, or a variation of it, counted as the lesson counts.

    `mode`: a row of `MODES`; `style`: gpt (biases, LayerNorm, a GeLU MLP, three dropouts) or llama (RMSNorm, SwiGLU); `f`: width of the MLP
    (gpt: 4h, llama: 8h/3); `tied`: embedding and output layer are one (gpt: yes, llama: no); `positions`: rows of a learned position table.
    Raises ValueError for an unknown word.
    """
    transformer = Transformer(
        block=style,
        layers=L,
        hidden_size=h,
        heads=a,
        kv_heads=kv_heads,
        ffn_hidden_size=f or round(_row(MLP_RATIO, style) * h),
        vocab_size=V,
        tied_embeddings=tied,
        max_positions=positions,
    )
    job = Job(
        model=Model(transformer=transformer),
        batch=Batch(micro_batch_size=b, sequence_length=s),
        framework=Framework(name="textbook"),
        gpu=Gpu(type="h100-80gb"),
    )
    return with_changes(job, _row(MODES, mode))


def _row(table: Mapping[str, T], word: str) -> T:
    """The row of a word; raises ValueError that names the words there are."""
    if word not in table:
        raise ValueError(f"{word!r} is not one of {', '.join(table)}")
    return table[word]


def plan_of(job: Job) -> Plan:
    """The job with every field decided; raises JobError where it contradicts itself."""
    check(job)
    architecture = describe(job.model).architecture
    if architecture is None:
        raise ValueError("the job has no dimensions: the exercises need those of a transformer")
    return resolve(job, architecture, world_of(job)).plan


def activations_at_peak(job: Job) -> int:
    """Bytes that are kept for the backward pass at the highest moment of the step."""
    return sum(line.bytes for line in predict(job).ledger if line.category == "activations")
