"""The pure path of a request with a memory: equal jobs under the same calibration are computed once."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

from peakgate.calibration import Snapshot
from peakgate.memory.job import Job
from peakgate.memory.prediction import FieldError, JobError
from peakgate.server import answer
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.cards import cheapest_gpu, memory_fraction, smallest_gpu
from peakgate.server.convert import read_message
from peakgate.server.decide import Decision, Ground, decide, retries
from peakgate.server.errors import PeakgateError, fields_error, from_job_error
from peakgate.server.invert import NOTHING, Solved, largest_micro_batch_size, solve
from peakgate.server.memory import MemoryModel
from peakgate.server.notes import predict_notes, suggest_notes
from peakgate.server.policy import Policy
from peakgate.server.store.records import PredictionContent
from peakgate.server.subjects import subject_text
from peakgate.server.suggest import Counsel, advise
from peakgate.server.wishes import NO_WISHES, Wishes
from peakgate.v1.document import united
from peakgate.v1.prediction_pb2 import PredictResponse, Suggestion, Verdict
from peakgate.v1.prediction_service_pb2 import Shortfall
from peakgate.v1.training_job_pb2 import TrainingJob

LARGEST_CACHED_BYTES = 1 << 15
"""Of a job whose answer is kept in memory: a full cache of the largest ones then takes no more than 128 MiB of keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An answer without a name, in both lengths, ready to be copied, and what is stored of it."""

    answer: PredictResponse
    brief: PredictResponse
    content: PredictionContent
    assessor: Assessor
    """Under which it was judged."""
    ground: Ground
    distrust: tuple[str, ...] = ()
    """Why the calibration was not trusted."""
    fits: tuple[bool, bool] | None = None
    """Whether the need fits the card by the active calibration and by the shadow; None without a shadow, or where it cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """What Suggest computes."""

    answer: PredictResponse
    suggestions: tuple[Suggestion, ...]
    pareto: tuple[Suggestion, ...]
    shortfall: Shortfall | None
    plans: int
    largest_micro_batch_size: int
    smallest_gpu: str
    cheapest_gpu: str
    memory_fraction: float
    notes: tuple[str, ...]
    solved: Solved


class Judge:
    """Answers jobs under the current snapshot. `swap` is atomic: a running computation finishes under the one it began with."""

    def __init__(self, memory: MemoryModel, snapshot: Snapshot, policy: Policy, *, cache_entries: int = 4096) -> None:
        self.memory = memory
        self.policy = policy
        self._assessor = Assessor(memory=memory, snapshot=snapshot, policy=policy)
        self._cache: OrderedDict[tuple[bytes, str], Judged] = OrderedDict()
        self._cache_entries = cache_entries

    @property
    def snapshot(self) -> Snapshot:
        """The calibration that bounds are made with."""
        return self._assessor.snapshot

    def swap(self, snapshot: Snapshot, shadow: Snapshot | None = None) -> None:
        """Makes `snapshot` the current one, beside a shadow that no answer shows; answers made under an older one are dropped."""
        self._renew(replace(self._assessor, snapshot=snapshot, shadow=shadow))

    def tell(self, told: tuple[str, ...]) -> None:
        """Takes the reasons for distrust that the service counts; answers made under others are dropped."""
        if told != self._assessor.told:
            self._renew(replace(self._assessor, told=told))

    @property
    def assessor(self) -> Assessor:
        """What jobs are judged with at present."""
        return self._assessor

    def cached(self, job_bytes: bytes, user: str = "") -> Judged | None:
        """The answer to a job that was judged before, by its deterministic serialisation."""
        key = self._key(job_bytes, user)
        judged = self._cache.get(key)
        if judged is not None:
            self._cache.move_to_end(key)
        return judged

    def judge(self, job_bytes: bytes, user: str = "", *, replay: bool = False, brief: bool = False) -> Judged:
        """The answer to a job of a user; a brief one searches for no suggestion. Raises PeakgateError when it cannot be judged."""
        assessor = self._assessor
        message = TrainingJob.FromString(job_bytes)
        own = replace(assessor, user=_known(user, assessor))
        response, assessment, decision, _ = self._answer(self._job(message), own, replay=replay, brief=brief)
        content = _content(response, assessment, job_bytes, message.name, self.memory.version)
        return Judged(
            answer=response,
            brief=answer.brief(response),
            content=content,
            assessor=assessor,
            ground=decision.ground,
            distrust=assessment.distrust,
            fits=assessor.fits_by_both(assessment),
        )

    def remember(self, job_bytes: bytes, judged: Judged, user: str = "") -> None:
        """Keeps an answer, unless the assessor was swapped while it was computed. Called on the event loop, as `cached` is."""
        if judged.assessor is not self._assessor or len(job_bytes) > LARGEST_CACHED_BYTES:
            return
        self._cache[self._key(job_bytes, user)] = judged
        if len(self._cache) > self._cache_entries:
            self._cache.popitem(last=False)

    def advise(self, message: TrainingJob, solve_path: str, wishes: Wishes = NO_WISHES) -> Advised:
        """Changes for a job, and inverted fields. Raises PeakgateError when it cannot be judged, or the path not be solved."""
        assessor = self._assessor
        job = self._job(message)
        solved = solve(job, solve_path, assessor, wishes) if solve_path else NOTHING
        response, assessment, _, counsel = self._answer(job, assessor, wishes=wishes)
        smallest, largest = smallest_gpu(job, assessor), largest_micro_batch_size(job, assessor)
        return Advised(
            answer=response,
            suggestions=tuple(answer.suggestion(each) for each in counsel.advice),
            pareto=tuple(answer.suggestion(each) for each in counsel.front),
            shortfall=answer.shortfall(counsel.shortfall) if counsel.shortfall is not None else None,
            plans=counsel.plans,
            largest_micro_batch_size=largest,
            smallest_gpu=smallest,
            cheapest_gpu=cheapest_gpu(job, assessor),
            memory_fraction=memory_fraction(job, assessment),
            notes=(*suggest_notes(job, assessment, smallest_gpu=smallest, largest_micro_batch_size=largest), *counsel.notes),
            solved=solved,
        )

    def refused(self, message: TrainingJob, known: tuple[FieldError, ...]) -> PeakgateError:
        """One error that names `known` bad fields and every other one: what cannot be read, and what has no meaning."""
        job, unread = read_message(message)
        found = _united(known, unread)
        try:
            self.memory.predict(job)
        except JobError as error:
            found = _united(found, error.fields)
        return fields_error(found)

    def _renew(self, assessor: Assessor) -> None:
        self._assessor = assessor
        self._cache.clear()

    def _key(self, job_bytes: bytes, user: str) -> tuple[bytes, str]:
        """Of users of whom nothing was learned all have the same answers."""
        return job_bytes, _known(user, self._assessor)

    def _job(self, message: TrainingJob) -> Job:
        job, unread = read_message(message)
        if unread:
            raise self.refused(message, ())
        return job

    def _answer(
        self, job: Job, assessor: Assessor, *, replay: bool = False, wishes: Wishes | None = None, brief: bool = False
    ) -> tuple[PredictResponse, Assessment, Decision, Counsel]:
        """The answer with what is advised: unasked, or under `wishes` when suggestions are asked for."""
        try:
            assessment = assessor.assess(job, replay=replay)
            decision = decide(job, assessment, assessor)
            if brief:
                counsel = Counsel()
            elif wishes is None:
                counsel = _wanted_advice(job, assessment, decision, assessor)
            else:
                counsel = advise(job, assessment, assessor, decision.deciding, wishes=wishes, thorough=True)
        except JobError as error:
            raise from_job_error(error) from error
        response = answer.build_answer(
            assessment,
            decision,
            None if brief else counsel.advice,
            predict_notes(job, assessment),
            calibration_version=assessor.snapshot.version,
        )
        return response, assessment, decision, counsel


def _known(user: str, assessor: Assessor) -> str:
    return user if assessor.snapshot.knows(user) else ""


def _united(fields: tuple[FieldError, ...], more: tuple[FieldError, ...]) -> tuple[FieldError, ...]:
    pairs = united(*([(each.field, each.description) for each in fields_] for fields_ in (fields, more)))
    return tuple(FieldError(field=path, description=text) for path, text in pairs)


def _content(response: PredictResponse, assessment: Assessment, job_bytes: bytes, job_name: str, model_version: str) -> PredictionContent:
    return PredictionContent(
        job=job_bytes,
        job_digest=hashlib.sha256(job_bytes).hexdigest(),
        job_name=job_name.replace("\x00", ""),
        verdict=Verdict.Name(response.verdict).removeprefix("VERDICT_"),
        group=response.calibration.group,
        required_bytes=response.peak.required_bytes,
        device_bytes=response.peak.device_bytes,
        bound_bytes=response.peak.bound_bytes,
        total_bytes=response.capacity.total_bytes,
        model_version=model_version,
        calibration_version=response.calibration.version,
        answer=answer.pack(response),
        subject=subject_text(assessment.subject),
    )


def _wanted_advice(job: Job, assessment: Assessment, decision: Decision, assessor: Assessor) -> Counsel:
    """What is computed unasked: a job that fits with room to spare, or whose fit cannot be judged, is not told what to change."""
    if decision.ground in (Ground.NO_GPU, Ground.INCOMPLETE) or (assessment.fits and not retries(assessment)):
        return Counsel()
    return advise(job, assessment, assessor, decision.deciding)
