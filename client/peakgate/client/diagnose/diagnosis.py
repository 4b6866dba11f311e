"""A diagnosis: the failure, its stage, the tensor that asked, and what acts on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from peakgate.client.diagnose.acts_on import STEP_BUFFERS, acting
from peakgate.client.diagnose.dimensions import Dimensions
from peakgate.client.diagnose.find import Failure
from peakgate.client.diagnose.stages import BY_NAME, ELSEWHERE, FIRST_STEP, UNKNOWN, Stage
from peakgate.client.diagnose.tensors import Tensor, candidates, matching
from peakgate.client.diagnose.where import MANY_STEPS, stage_of
from peakgate.v1.prediction_pb2 import LedgerLine, Suggestion
from peakgate.v1.prediction_service_pb2 import SuggestResponse

OF_A_STEP = ("forward", "loss", "backward", "first-step")
"""Stages that every step passes: one that fails late fitted before."""

MOST_TENSORS = 3

LEAST_OTHERS_BYTES = 2**30
"""Of the card that another process holds, below which it is not spoken of: a process with a bare CUDA context has less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A job with what the service says of it."""

    label: str
    sizes: Dimensions
    advice: SuggestResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """`told_by`: whether the user, the message, the traceback or the tensor's size tells the stage; empty: nothing does. `lines`: what the
    job's ledger holds in the categories; `further`: another stage that applies as well."""

    stage: Stage
    told_by: str
    category: str
    failure: Failure | None = None
    further: Stage | None = None
    tensors: Sequence[Tensor] = ()
    lines: Sequence[LedgerLine] = ()
    suggestions: Sequence[Suggestion] = ()
    notes: Sequence[str] = ()
    label: str = ""

    @property
    def categories(self) -> tuple[str, ...]:
        """The ledger's categories, the one in question first."""
        return tuple(dict.fromkeys(name for name in (self.category, *self.stage.categories) if name))


def diagnose(failure: Failure | None, stage_name: str, judged: Judged | None) -> Diagnosis:
    """What can be said of a failure in a log, of a stage that the user names (which wins), or of both; of a job when there is one."""
    stage, told_by = _stage(failure, stage_name)
    tensors = _tensors(failure, stage, judged)
    if stage is UNKNOWN and tensors:
        stage, told_by = BY_NAME[next(iter(tensors[0].categories))], "size"
    category = tensors[0].category(stage.name) if tensors else next(iter(stage.categories), "")
    found = Diagnosis(
        stage=stage,
        told_by=told_by,
        category=category,
        failure=failure,
        further=_further(failure, stage),
        tensors=tensors[:MOST_TENSORS],
        notes=tuple(_notes(failure, stage)),
    )
    return _of_job(found, judged) if judged else found


def _stage(failure: Failure | None, name: str) -> tuple[Stage, str]:
    if name:
        return BY_NAME[name], "user"
    if failure is None:
        return UNKNOWN, ""
    where = ELSEWHERE.get(failure.message.kind.where)
    if where is not None:
        return where, "message"
    traced = stage_of(failure.frames)
    return (BY_NAME[traced], "traceback") if traced else (UNKNOWN, "")


def _further(failure: Failure | None, stage: Stage) -> Stage | None:
    """A step that failed after many others: why it did so late."""
    late = failure is not None and (failure.steps or 0) >= MANY_STEPS
    return BY_NAME["hours-later"] if late and stage.name in (*OF_A_STEP, UNKNOWN.name) else None


def _tensors(failure: Failure | None, stage: Stage, judged: Judged | None) -> list[Tensor]:
    if failure is None or judged is None or failure.message.kind.where != "gpu" or "tried" not in failure.message.sizes:
        return []
    by_allocator = failure.message.kind.name == "allocator"
    return matching(failure.message.sizes["tried"], list(candidates(judged.sizes)), stage.name, by_allocator=by_allocator)


def _notes(failure: Failure | None, stage: Stage) -> list[str]:
    if failure is None:
        return []
    message, notes = failure.message, []
    tried, free, unallocated = message.bytes_of("tried"), message.bytes_of("free"), message.unallocated_bytes
    if failure.steps is not None and failure.steps < 1 and stage.name in OF_A_STEP:
        notes.append(f"it failed {FIRST_STEP}")
    if tried and unallocated and unallocated >= tried:
        notes.append(
            "PyTorch held more than was asked for, in pieces: fragmentation. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True joins them"
        )
    if tried and free and free >= tried:
        notes.append("as much as was asked for was free on the card: a limit of the process, or another process that took it first")
    held = {number: size for number, size in message.others.items() if size >= LEAST_OTHERS_BYTES}
    if held:
        notes.append(
            f"another process (id {', '.join(map(str, held))}) holds a part of the same card: end it, or ask for a card of your own"
        )
    return notes


def _of_job(found: Diagnosis, judged: Judged) -> Diagnosis:
    answer = judged.advice.prediction
    lines = sorted((line for line in answer.ledger if line.category in found.categories), key=lambda line: -line.bytes)
    return replace(
        found,
        lines=lines[:MOST_TENSORS],
        suggestions=acting(judged.advice.suggestions, _acted_on(found)),
        label=judged.label,
        notes=(*found.notes, *_against(found, judged.advice)),
    )


def _acted_on(found: Diagnosis) -> list[str]:
    in_step = found.stage.name in ("first-step", "setup")
    return [STEP_BUFFERS if name == "temporaries" and in_step else name for name in found.categories]


def _against(found: Diagnosis, advice: SuggestResponse) -> list[str]:
    """Where the prediction says another thing than the failure."""
    answer = advice.prediction
    fits = answer.capacity.usable_bytes and answer.peak.bound_bytes <= answer.capacity.usable_bytes
    if fits and found.stage.name in (*OF_A_STEP, "load", "setup") and found.failure is not None:
        return ["as the job is written it should fit: compare it with what ran (micro-batch, lengths, attention), or report it"]
    return []
