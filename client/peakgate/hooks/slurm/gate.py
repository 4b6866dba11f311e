"""From one request of the controller to its reply: read, judged, treated by the rules, written down."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from peakgate.client.imports.joined import UNCHECKED
from peakgate.client.source import LaunchText
from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import STORED, Judgement, Judges
from peakgate.hooks.change import change_of
from peakgate.hooks.slurm.attached import Attached, read_attached
from peakgate.hooks.slurm.cards import Cards
from peakgate.hooks.slurm.finding import Finder
from peakgate.hooks.slurm.fitting import is_as_asked, on_request
from peakgate.hooks.slurm.gate_metrics import GateMetrics
from peakgate.hooks.slurm.journal import Decision, Journal
from peakgate.hooks.slurm.reading import Read
from peakgate.hooks.slurm.rules import TOLD, Mode, Rules, Treatment, Who
from peakgate.hooks.slurm.steering import Steering, card_too_small, steering_of, type_that_holds
from peakgate.hooks.slurm.submission import Submission, submission_of
from peakgate.hooks.slurm.verdicts import Case, Outcome, outcome_of
from peakgate.hooks.slurm.wire import MODIFY, Reply, Request, WireError, parse_request
from peakgate.hooks.slurm.wishes import Wishes, read_wishes
from peakgate.v1.names import bare_id
from peakgate.v1.prediction_pb2 import Verdict

BESIDE_SERVICE_SECONDS = 0.07
"""Beside the service's deadline, for all else: together below the quarter of a second that the controller's hook waits, so that a slow
answer is an answer, and no failure of the gate."""

TOO_SLOW = "judging took too long"
MALFORMED = Reply(word=UNCHECKED)

Tell = Callable[[str, str], None]


@dataclass(kw_only=True)
class _Judged:
    judgement: Judgement
    read: Read = field(default_factory=Read)
    launch: LaunchText | None = None
    steering: Steering = field(default_factory=Steering)
    ask_for: str = ""
    too_small: str = ""


@dataclass(kw_only=True)
class Gate:
    """`rules` gives those in force, `cards` those of the cluster. `operators`: users whom nothing is refused."""

    rules: Callable[[], Rules]
    judges: Judges
    advisers: Advisers
    finder: Finder
    journal: Journal
    metrics: GateMetrics
    tell: Tell
    cards: Callable[[], Cards]
    operators: frozenset[int] = frozenset({0})
    cluster: str = ""

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

    async def _decide(self, request: Request, began: float) -> Reply:
        submission, rules = submission_of(request.flat()), self.rules()
        who = Who(
            partitions=submission.partitions,
            account=submission.account,
            qos=submission.qos,
            users=tuple(filter(None, (submission.user_name, str(_user(request, submission))))),
        )
        treatment = rules.treatment(who)
        if not submission.asks_for_gpus or submission.is_fraction or treatment.mode is Mode.off or rules.is_exempt(submission.account):
            return Reply()
        attached = read_attached(request.environment, submission.comment)
        wishes = read_wishes(request.script, attached)
        try:
            async with asyncio.timeout(self.judges.deadline_seconds + BESIDE_SERVICE_SECONDS - (time.perf_counter() - began)):
                judged = await self._judged(request, submission, attached, wishes, rules, treatment)
        except TimeoutError:
            judged = _Judged(judgement=Judgement(problem=TOO_SLOW, is_away=True))
        read = judged.read
        case = Case(
            judgement=judged.judgement,
            steering=judged.steering,
            ask_for=judged.ask_for,
            too_small=judged.too_small,
            treatment=treatment,
            wishes=wishes,
            override=rules.override_of(wishes.override),
            is_partial=read.is_partial,
            is_told=attached.is_told and judged.judgement.by == STORED,
            edit=functools.partial(change_of, launch=judged.launch) if judged.launch is not None else None,
            by_operator=request.operation == MODIFY and request.uid in self.operators,
        )
        outcome = outcome_of(case)
        self._note(_decision(request, submission, case, outcome, self.cluster, began))
        return outcome.reply

    async def _judged(
        self, request: Request, submission: Submission, attached: Attached, wishes: Wishes, rules: Rules, treatment: Treatment
    ) -> _Judged:
        found = await self.finder.find(request, submission, attached)
        if found.job is None:
            return _Judged(read=found.read, judgement=Judgement(problem=found.read.problem))
        cards = self.cards()
        choice = cards.choose(submission)
        fitted = on_request(found.job, submission, choice.card)
        if found.stored is not None and not wishes.try_reason and is_as_asked(found.job, fitted):
            judgement = Judgement(answer=found.stored.prediction, by=STORED)
        else:
            user = f"{request.cluster or self.cluster or 'default'}/{_user(request, submission)}"
            judgement = await self.judges.predict(
                fitted, user=user, try_reason=wishes.try_reason, may_judge_here=rules.judge_without_service
            )
        if treatment.mode not in TOLD:
            return _Judged(read=found.read, judgement=judgement)
        judgement = await self.advisers.advised(judgement, fitted)
        if judgement.answer is None:
            return _Judged(read=found.read, judgement=judgement)
        steering = steering_of(submission, cards, choice, judgement.answer)
        ask_for = type_that_holds(submission, cards, choice, judgement.answer)
        too_small = card_too_small(cards, choice, judgement.answer)
        launch = found.read.launch
        if launch is None and judgement.answer.suggestions and not attached.is_told:
            launch = await self.finder.launch(request, submission, attached)
        return _Judged(read=found.read, launch=launch, judgement=judgement, steering=steering, ask_for=ask_for, too_small=too_small)

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
        prediction=bare_id(answer.prediction) if answer is not None else "",
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
