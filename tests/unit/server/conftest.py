"""A memory model of a few lines, so that a test of the service states its own figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import pytest

from peakgate.calibration import Calibrator
from peakgate.memory.cards import Card as Catalogued
from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Attention, Batch, Checkpointing, Framework, Gpu, Job, Model, Node, Offload
from peakgate.memory.prediction import Change, FieldError, JobError, LedgerLine, Prediction, TimelinePoint
from peakgate.memory.suggest.wanted import LimitOf, Plans, Wanted
from peakgate.server.assess import Assessor
from peakgate.server.memory import Changes, MemoryModel
from peakgate.server.policy import Policy

GB = 1_000_000_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card that the driver takes nothing from."""

    gpu: str
    total_bytes: int
    usable_bytes: int
    is_part: bool = False


def predict(job: Job) -> Prediction:
    """States 10 GB, 10 GB of activations a sequence, a fifth with flash, a tenth with full checkpointing; the cache adds 20 %.

    A micro-batch of 13 is illegal; an unstated one leaves the answer undecided. An offloaded optimizer moves 5 GB to a node's RAM.
    """
    sequences = job.batch.micro_batch_size or 0
    if sequences == 13 or sequences < 0:
        raise JobError("FIELD_INVALID", (FieldError(field="batch.micro_batch_size", description="must not be 13"),))
    activations = 10 * GB * sequences
    if job.attention.implementation == "flash":
        activations //= 5
    if job.checkpointing.mode == "full":
        activations //= 10
    host = 5 * GB if job.offload.optimizer == "cpu" else 0
    states = 10 * GB * (job.model.parameters or GB) // GB - host
    required = states + activations
    device = required * 6 // 5
    return Prediction(
        live_bytes=required,
        allocated_bytes=required,
        reserved_bytes=device,
        device_bytes=device,
        required_bytes=required,
        host_bytes=host,
        parameters=job.model.parameters or GB,
        trainable_parameters=job.model.parameters or GB,
        saved_activation_bytes_per_layer=activations,
        peak_phase="backward",
        phase_peaks=(("load", states), ("forward", required), ("backward", required)),
        pipeline_stage=0,
        rank_reason="the only GPU",
        ledger=(
            LedgerLine(category="parameters", item="weights", bytes=states),
            LedgerLine(category="activations", item="saved", bytes=activations),
            LedgerLine(category="fragmentation", item="cache", bytes=device - required),
        ),
        timeline=(TimelinePoint(phase="forward", label="start", allocated_bytes=states),),
        group="textbook/none/float32",
        undecided=() if sequences else ("batch.micro_batch_size is not stated",),
        states_bytes=states,
        assumptions=("framework.name: textbook",),
    )


def capacity_of(job: Job) -> Card | None:
    """The bytes that the job states."""
    total = job.gpu.memory_bytes or 0
    return Card(gpu=job.gpu.type or "", total_bytes=total, usable_bytes=total) if total else _named(job.gpu.type)


CARDS = {"small": 20 * GB, "middle": 40 * GB, "large": 80 * GB, "large/half": 39 * GB}


def _named(name: str | None) -> Card | None:
    return Card(gpu=name, total_bytes=CARDS[name], usable_bytes=CARDS[name]) if name else None


def cards() -> tuple[Catalogued, ...]:
    """All of them, smallest first; a job needs the same on each."""
    by_size = sorted(CARDS, key=lambda name: CARDS[name])
    return tuple(Catalogued(name=name, usable_bytes=CARDS[name]) for name in by_size)


def favourable(job: Job) -> Changes:
    """Attention and checkpointing, where they are not stated."""
    changes: list[tuple[str, Value]] = []
    if job.attention.implementation is None:
        changes.append(("attention.implementation", "flash"))
    if job.checkpointing.mode is None:
        changes.append(("checkpointing.mode", "full"))
    return tuple(changes)


def plans(job: Job, limit_of: LimitOf, wanted: Wanted) -> Plans:
    """An illegal one, a small one, a large one: those that fit, and the last where neither does."""
    listed = (
        Change(title="thirteen", changes=(("batch.micro_batch_size", 13),), relative_step_time=1.0, why="illegal"),
        Change(title="flash", changes=(("attention.implementation", "flash"),), relative_step_time=1.0, why="no scores"),
        Change(title="full checkpointing", changes=(("checkpointing.mode", "full"),), relative_step_time=1.33, why="recomputes"),
    )
    legal = [(change, predict(with_changes(job, change.changes))) for change in listed[1:]]
    fitting = [change for change, figures in legal if figures.required_bytes <= limit_of(figures.group)]
    return Plans(suggestions=(listed[0], *fitting)[: wanted.most], closest=None if fitting else listed[2], considered=len(listed))


def changed(job: Job, changes: Iterable[tuple[str, Value]], /) -> Job:
    """The memory model's own."""
    return with_changes(job, changes)


def replayed(job: Job) -> Prediction:
    """The same job, with reserved bytes that only a replay gives."""
    return dataclasses.replace(predict(job), reserved_bytes=predict(job).reserved_bytes + 1)


MODEL = MemoryModel(
    predict=predict,
    replayed=replayed,
    capacity_of=capacity_of,
    favourable=favourable,
    with_changes=changed,
    plans=plans,
    version="test",
    cards=lambda _: cards(),
)


@pytest.fixture
def memory() -> MemoryModel:
    """The model above."""
    return MODEL


@pytest.fixture
def assessor() -> Assessor:
    """The model above under the prior, which leaves a textbook job no margin, and no operator's reserve."""
    return Assessor(memory=MODEL, snapshot=Calibrator(epoch="test").snapshot(), policy=Policy())


@pytest.fixture
def a_job() -> Callable[..., Job]:
    """A job of one sequence with everything stated: 20 GB needed on an 80 GB card."""

    def build(
        *,
        sequences: int | None = 1,
        attention: str | None = "eager",
        checkpointing: str | None = "none",
        memory_bytes: int | None = 80 * GB,
        gpu: str | None = None,
        offload: str | None = None,
        host_memory_bytes: int | None = None,
        parameters: int = GB,
    ) -> Job:
        return Job(
            name="a job",
            model=Model(parameters=parameters),
            framework=Framework(name="textbook"),
            batch=Batch(micro_batch_size=sequences),
            attention=Attention(implementation=attention),
            checkpointing=Checkpointing(mode=checkpointing),
            gpu=Gpu(memory_bytes=memory_bytes, type=gpu),
            offload=Offload(optimizer=offload),
            node=Node(host_memory_bytes=host_memory_bytes),
        )

    return build
