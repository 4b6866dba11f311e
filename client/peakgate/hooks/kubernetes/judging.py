"""The verdict on a job for every card that its pods may get, and one stored prediction of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import SERVICE, STORED, Judgement, Judges
from peakgate.hooks.kubernetes.candidates import MOST_CARDS, Cards, Conclusion, concluded
from peakgate.hooks.kubernetes.object_job import counted, on_card
from peakgate.v1.prediction_pb2 import Verdict
from peakgate.v1.prediction_service_pb2 import PredictRequest
from peakgate.v1.training_job_pb2 import TrainingJob

FRESH_SECONDS = 60.0
"""A prediction that an annotation names was made while this object was created, or for another one that it was copied from."""

REUSED = "REQUEST_ID_REUSED"
"""Of an object that is reviewed again, when what is known of the cluster has changed meanwhile: it is another job."""

TOO_MANY = "its labels allow more than eight kinds of GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`request_id`: under which the prediction is stored; empty: nothing is stored. `named`: a prediction that the object names."""

    job: TrainingJob
    cards: Cards = field(default_factory=Cards)
    request_id: str = ""
    user: str = ""
    try_reason: str = ""
    named: str = ""
    may_judge_here: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`conclusion`: over all cards; None where the answer is that of the one card."""

    judgement: Judgement
    job: TrainingJob | None = None
    conclusion: Conclusion | None = None

    @property
    def verdict(self) -> Verdict.ValueType:
        """What holds whichever card it gets."""
        if self.conclusion is not None:
            return self.conclusion.verdict
        return self.judgement.answer.verdict if self.judgement.answer is not None else Verdict.VERDICT_UNSPECIFIED

    @property
    def reason(self) -> str:
        """What is not in the answer; empty where that says it."""
        return self.conclusion.reason if self.conclusion is not None else ""


@dataclass(kw_only=True)
class Jury:
    """Asks the service, or the one beside the webhook."""

    judges: Judges
    advisers: Advisers

    async def judge(self, asked: Asked, *, is_advised: bool) -> Judged:
        """The verdict. `is_advised`: a rejection comes with the change that would make it fit, when that is found in time."""
        if len(asked.cards.candidates) > MOST_CARDS:
            asked = replace(asked, cards=Cards(doubt=TOO_MANY))
        job = counted(asked.job, asked.cards)
        jobs = [on_card(job, each) for each in asked.cards.candidates] or [job]
        judged = await self._stored(asked, jobs) or await self._asked(asked, jobs)
        if not is_advised or judged.job is None or judged.verdict != Verdict.VERDICT_REJECT:
            return judged
        return replace(judged, judgement=await self.advisers.advised(judged.judgement, judged.job))

    async def _stored(self, asked: Asked, jobs: Sequence[TrainingJob]) -> Judged | None:
        """What was stored a moment ago for this very job, whose card is known."""
        if not asked.named or asked.try_reason or len(jobs) != 1 or asked.cards.doubt:
            return None
        found = await self.judges.stored(asked.named, is_brief=True)
        if found is None or found.job != jobs[0]:
            return None
        age = datetime.now(UTC).timestamp() - found.stored.create_time.ToDatetime(UTC).timestamp()
        if age > FRESH_SECONDS:
            return None
        conclusion = concluded(asked.cards, [found.prediction.verdict]) if asked.cards.candidates else None
        return Judged(judgement=Judgement(answer=found.prediction, by=STORED, is_brief=True), job=jobs[0], conclusion=conclusion)

    async def _asked(self, asked: Asked, jobs: Sequence[TrainingJob]) -> Judged:
        if not asked.cards.candidates:
            conclusion = concluded(asked.cards, ()) if asked.cards.doubt else None
            return Judged(judgement=await self._ask(asked, jobs[0], is_kept=True), job=jobs[0], conclusion=conclusion)
        answers = await asyncio.gather(*(self._ask(asked, job, is_kept=len(jobs) == 1) for job in jobs))
        missing = next((each for each in answers if each.answer is None), None)
        if missing is not None:
            return Judged(judgement=missing)
        verdicts = [each.answer.verdict for each in answers if each.answer is not None]
        conclusion = concluded(asked.cards, verdicts)
        place = asked.cards.place_of(conclusion.shown)
        shown = answers[place]
        if len(jobs) > 1 and asked.request_id and shown.by == SERVICE:
            shown = await self._ask(asked, jobs[place], is_kept=True)
        return Judged(judgement=shown, job=jobs[place], conclusion=conclusion)

    async def _ask(self, asked: Asked, job: TrainingJob, *, is_kept: bool) -> Judgement:
        is_kept = is_kept and bool(asked.request_id)
        request = PredictRequest(
            job=job,
            brief=True,
            request_id=asked.request_id if is_kept else "",
            validate_only=not is_kept,
            user=asked.user,
            try_reason=asked.try_reason if is_kept or not asked.request_id else "",
        )
        judgement = await self.judges.ask(request, may_judge_here=asked.may_judge_here)
        if judgement.reason == REUSED:
            request.request_id = str(uuid.uuid4())
            judgement = await self.judges.ask(request, may_judge_here=asked.may_judge_here)
        return judgement
