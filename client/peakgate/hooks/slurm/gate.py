"""From one request of the controller to its reply: read, judged, treated by the rules, written down."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from peakgate.hooks.slurm.advising import Advisers
from peakgate.hooks.slurm.asking import STORED, Judgement, Judges
from peakgate.hooks.slurm.attached import PREFIX, Attached, AttachedError, attached_job, is_of, read_attached
from peakgate.hooks.slurm.cache import Cache
from peakgate.hooks.slurm.change import change_of
from peakgate.hooks.slurm.fitting import Card, is_as_asked, on_request
from peakgate.hooks.slurm.gate_metrics import GateMetrics
from peakgate.hooks.slurm.journal import Decision, Journal
from peakgate.hooks.slurm.reading import Read, read_submission, request_flags
from peakgate.hooks.slurm.rules import TOLD, Mode, Rules, Treatment, Who
from peakgate.hooks.slurm.submission import Submission, submission_of
from peakgate.hooks.slurm.verdicts import Case, Outcome, outcome_of
from peakgate.hooks.slurm.wire import MODIFY, UNCHECKED, Reply, Request, WireError, parse_request
from peakgate.hooks.slurm.wishes import Wishes, read_wishes
from peakgate.v1.prediction_pb2 import Verdict
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse
from peakgate.v1.training_job_pb2 import TrainingJob

ANSWER_SECONDS = 0.22
"""Below the quarter of a second that the controller's hook waits, so that a slow answer is an answer, and no failure of the gate."""

READ_SECONDS = 0.12
"""A script is read in milliseconds; one that takes longer is left unread."""

STAMP = re.compile(r"(?<!\S)peakgate=([0-9A-Za-z_-]{1,128})(?!\S)")
MALFORMED = Reply(word=UNCHECKED)

CardOf = Callable[[Submission], Card | None]
Tell = Callable[[str, str], None]


@dataclass(kw_only=True)
class _Found:
    """What is known of the job on the way to its judgement."""

    job: TrainingJob | None = None
    stored: GetPredictionResponse | None = None
    read: Read = field(default_factory=Read)


@dataclass(kw_only=True)
class Gate:
    """`rules` gives those in force, `card_of` the card that a request may get. `operators`: users whom nothing is refused."""

    rules: Callable[[], Rules]
    judges: Judges
    advisers: Advisers
    journal: Journal
    metrics: GateMetrics
    tell: Tell
    card_of: CardOf
    operators: frozenset[int] = frozenset({0})
    cluster: str = ""
    answer_seconds: float = ANSWER_SECONDS
    _readings: Cache[Read] = field(default_factory=lambda: Cache(entries=256))
    _reader: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="read"))

    async def answer(self, line: bytes) -> bytes:
        """The reply to a request. A fault of our own admits the job unchecked, and is logged."""
        began = time.perf_counter()
        try:
            request = parse_request(line)
        except WireError as error:
            self.metrics.unchecked.labels("malformed").inc()
            self.tell("error", str(error))
            return MALFORMED.encoded()
        try:
            return (await self._decide(request, began)).encoded()
        except Exception as error:  # noqa: BLE001 - whatever it is, a submission must not hang on it
            self.metrics.unchecked.labels("fault").inc()
            self.tell("error", f"fault in the gate, admitted unchecked: {type(error).__name__}: {error}")
            return MALFORMED.encoded()

    def close(self) -> None:
        """Ends the threads that read."""
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _decide(self, request: Request, began: float) -> Reply:
        submission, rules = submission_of(request.flat()), self.rules()
        who = Who(
            partitions=submission.partitions,
            account=submission.account,
            qos=submission.qos,
            users=tuple(filter(None, (submission.user_name, str(_user(request, submission))))),
        )
        treatment = rules.treatment(who)
        if not submission.asks_for_gpus or treatment.mode is Mode.off or rules.is_exempt(submission.account):
            return Reply()
        attached = read_attached(request.environment, submission.comment)
        wishes = read_wishes(request.script, attached)
        try:
            async with asyncio.timeout(self.answer_seconds - (time.perf_counter() - began)):
                read, judgement = await self._judged(request, submission, attached, wishes, rules, treatment)
        except TimeoutError:
            read, judgement = Read(), Judgement(problem="judging took too long", is_away=True)
        case = Case(
            judgement=judgement,
            treatment=treatment,
            wishes=wishes,
            override=rules.override_of(wishes.override),
            is_partial=read.is_partial,
            edit=functools.partial(change_of, launch=read.launch) if read.launch is not None else None,
            by_operator=request.operation == MODIFY and request.uid in self.operators,
        )
        outcome = outcome_of(case)
        self._note(_decision(request, submission, case, outcome, self.cluster, began))
        return outcome.reply

    async def _judged(
        self, request: Request, submission: Submission, attached: Attached, wishes: Wishes, rules: Rules, treatment: Treatment
    ) -> tuple[Read, Judgement]:
        if submission.is_fraction:
            return Read(), Judgement()  # its memory is no card's
        found = await self._found(request, submission, attached)
        if found.job is None:
            return found.read, Judgement(problem=found.read.problem)
        fitted = on_request(found.job, submission, self.card_of(submission))
        if found.stored is not None and not wishes.try_reason and is_as_asked(found.job, fitted):
            return found.read, Judgement(answer=found.stored.prediction, by=STORED)
        user = f"{request.cluster or self.cluster or 'default'}/{_user(request, submission)}"
        judgement = await self.judges.predict(fitted, user=user, try_reason=wishes.try_reason, may_judge_here=rules.judge_without_service)
        if treatment.mode in TOLD:
            judgement = await self.advisers.advised(judgement, fitted)
        return found.read, judgement

    async def _found(self, request: Request, submission: Submission, attached: Attached) -> _Found:
        """The job: of a change the one that was judged before; else what the submit host attached, made sure of; else what is read here."""
        if request.operation == MODIFY:
            return await self._found_before(submission)
        try:
            job = attached_job(attached, request.script or None) if attached.digest else None
        except AttachedError as error:
            self.tell("warning", f"uid {request.uid}: {error}; the script is read instead")
            return _Found(read=(read := await self._read(request, submission, attached)), job=read.job)
        stored = await self.judges.stored(attached.prediction) if attached.prediction and attached.digest else None
        if stored is not None and not is_of(attached, stored.job):
            self.tell("warning", f"uid {request.uid}: {attached.prediction} is a prediction of another job")
            stored = None
        if stored is not None:
            return _Found(job=stored.job, stored=stored)
        if job is not None:
            return _Found(job=job)
        read = await self._read(request, submission, attached)
        return _Found(read=read, job=read.job)

    async def _found_before(self, submission: Submission) -> _Found:
        match = STAMP.search(submission.admin_comment)
        if match is None or match[1] == UNCHECKED:
            return _Found()
        stored = await self.judges.stored(PREFIX + match[1])
        return _Found(job=stored.job, stored=stored) if stored is not None else _Found()

    async def _read(self, request: Request, submission: Submission, attached: Attached) -> Read:
        """Reads in a thread; equal submissions are read once."""
        key = (request.script, request.argv, attached.stated, *request_flags(submission))
        if (kept := self._readings.get(key)) is not None:
            return kept
        work = functools.partial(read_submission, submission, request.script, request.argv, attached.stated)
        try:
            read = await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._reader, work), READ_SECONDS)
        except TimeoutError:
            return Read(problem="the script takes too long to be read")
        self._readings.put(key, read)
        return read

    def _note(self, decision: Decision) -> None:
        self.journal.note(decision)
        self.metrics.decisions.labels(decision.mode, decision.verdict or "none", decision.outcome).inc()
        self.metrics.seconds.observe(decision.milliseconds / 1e3)
        if not decision.checked:
            self.metrics.unchecked.labels("away" if decision.reason else "no_training").inc()
        if decision.admitted_by:
            self.metrics.admitted.labels(decision.admitted_by.partition(" ")[0]).inc()


def _user(request: Request, submission: Submission) -> int:
    """Whose job it is: root may submit for others."""
    return submission.user_id if submission.user_id is not None else request.uid


def _decision(request: Request, submission: Submission, case: Case, outcome: Outcome, cluster: str, began: float) -> Decision:
    answer, total = case.judgement.answer, submission.gpu_count
    return Decision(
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        operation=request.operation,
        cluster=request.cluster or cluster,
        uid=_user(request, submission),
        user=submission.user_name,
        account=submission.account,
        qos=submission.qos,
        partition=",".join(submission.partitions),
        job_name=submission.name,
        job_id=submission.job_id or 0,
        gpus=total.count if total is not None else 0,
        gpu_types=[each for each in submission.types if each],
        card=answer.capacity.gpu if answer is not None else "",
        mode=case.treatment.mode.value,
        verdict=Verdict.Name(answer.verdict).removeprefix("VERDICT_") if answer is not None else "",
        prediction=answer.prediction.removeprefix(PREFIX) if answer is not None else "",
        outcome=outcome.outcome,
        checked=answer is not None,
        by=case.judgement.by,
        reason=answer.reason if answer is not None else case.judgement.problem,
        required_bytes=answer.peak.required_bytes if answer is not None else 0,
        bound_bytes=answer.peak.bound_bytes if answer is not None else 0,
        usable_bytes=answer.capacity.usable_bytes if answer is not None else 0,
        admitted_by=outcome.admitted_by,
        wish=case.wishes.try_reason or case.wishes.override_reason,
        milliseconds=round((time.perf_counter() - began) * 1e3, 3),
    )
