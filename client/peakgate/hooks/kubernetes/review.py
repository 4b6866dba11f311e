"""From the body of a review to the body of its answer: skipped, or read, judged, decided, within a deadline. Never denies on a guess."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

from peakgate.hooks.change import change_of
from peakgate.hooks.kubernetes.admission import Admission, Answer, parse_review, response_of
from peakgate.hooks.kubernetes.annotations import MODE, OVERRIDE, PREDICTION, TRY
from peakgate.hooks.kubernetes.cluster import Cluster, NoCluster
from peakgate.hooks.kubernetes.facts import Facts, with_devices
from peakgate.hooks.kubernetes.joining import joins_by_uid
from peakgate.hooks.kubernetes.judging import Asked, Judged, Jury
from peakgate.hooks.kubernetes.metrics import WebhookMetrics
from peakgate.hooks.kubernetes.mutating import changed_by, patch_of
from peakgate.hooks.kubernetes.outcomes import FAULT
from peakgate.hooks.kubernetes.reading import Read, read_object
from peakgate.hooks.kubernetes.rules import TOLD, Mode, Rules
from peakgate.hooks.kubernetes.stated_gpu import AskedCards, asked_of, trains_without_gpus
from peakgate.hooks.kubernetes.verdicts import Case, Decided, Wishes, decide, not_judged
from peakgate.hooks.kubernetes.workloads import OTHER_KIND, TRAIN_JOB, asks_for_gpus, content_of, is_new, is_owned, kind_of, might_train
from peakgate.v1.prediction_pb2 import Suggestion, Verdict
from peakgate.v1.training_job_pb2 import TrainingJob

DEADLINE_SECONDS = 1.7
"""An answer leaves within two, and the API server waits for three."""

_RANKS = {Verdict.VERDICT_REJECT: 2, Verdict.VERDICT_UNDECIDED: 1}

Tell = Callable[[str, str], None]


@dataclass(kw_only=True)
class Reviewer:
    """`rules` gives those in force, `facts` what is known of the nodes. Reading runs in `executor`, so that the deadline holds whatever an
    object looks like."""

    rules: Callable[[], Rules]
    jury: Jury
    metrics: WebhookMetrics
    tell: Tell
    executor: Executor
    cluster: Cluster = field(default_factory=NoCluster)
    facts: Callable[[], Facts] = Facts
    deadline_seconds: float = DEADLINE_SECONDS

    async def validate(self, body: bytes) -> bytes:
        """The answer to a review of the validating webhook. Raises ReviewError for what is none."""
        began = time.perf_counter()
        admission = parse_review(body)
        decided = await self._decided(admission, self._validated)
        self.metrics.reviews.labels(kind_of(admission), decided.verdict, decided.outcome).inc()
        self.metrics.seconds.observe(time.perf_counter() - began)
        return response_of(admission, decided.answer)

    async def mutate(self, body: bytes) -> bytes:
        """The answer to a review of the mutating webhook: allowed, with what is added and no word, for the validating one speaks. Raises
        ReviewError for what is none."""
        began = time.perf_counter()
        admission = parse_review(body)
        decided = await self._decided(admission, self._mutated)
        patch = decided.answer.patch
        self.metrics.patches.labels(FAULT if decided.outcome == FAULT else changed_by(patch)).inc()
        self.metrics.seconds.observe(time.perf_counter() - began)
        return response_of(admission, Answer(patch=patch))

    async def _decided(self, admission: Admission, decided_by: Callable[[Admission, Mode], Awaitable[Decided]]) -> Decided:
        mode = Mode.warn
        try:
            async with asyncio.timeout(self.deadline_seconds):
                mode = await self._mode(admission)
                return Decided() if mode is Mode.off else await decided_by(admission, mode)
        except TimeoutError:
            return not_judged(mode)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody's job hangs on it
            self.tell("error", f"fault in the webhook, admitted unchecked: {type(error).__name__}: {error}")
            return Decided(answer=not_judged(mode).answer, outcome=FAULT)

    async def _mode(self, admission: Admission) -> Mode:
        """off as well for what is not judged in any mode."""
        if kind_of(admission) == OTHER_KIND or not is_new(admission) or is_owned(admission) or not asks_for_gpus(admission):
            return Mode.off
        labels = [admission.label(MODE), *await self.cluster.modes_of(admission.namespace)]
        return self.rules().mode_of(admission.namespace, labels)

    async def _validated(self, admission: Admission, mode: Mode) -> Decided:
        read = await self._read(admission)
        facts = self._facts(admission, read)
        if _is_without_gpus(admission, read, facts):
            return Decided()
        if read.job is None:
            is_silent = read.is_unknown and not might_train(admission, is_other=read.is_other)
            return Decided() if is_silent else not_judged(mode, read.problem)
        read, job, told = await self._hardest(admission, read, read.job, facts, mode)
        asked = asked_of(read, job, facts)
        judged = await self._judged(admission, job, asked, mode, request_id="" if admission.is_dry_run else _id_of(admission))
        return decide(
            Case(
                judged=judged,
                mode=mode,
                wishes=self._wishes(admission),
                is_partial=read.is_partial,
                is_dry_run=admission.is_dry_run,
                sources=read.sources,
                overruled=asked.overruled,
                chosen=told,
                edit=_edit_of(read),
            )
        )

    async def _hardest(self, admission: Admission, read: Read, job: TrainingJob, facts: Facts, mode: Mode) -> tuple[Read, TrainingJob, str]:
        """Of the launches of a container that run one after another the one that decides, and that it is this one, in words."""
        launches = [(read, job), *((each, each.job) for each in read.further if each.job is not None)]
        if len(launches) == 1:
            return read, job, ""
        asked = [self._judged(admission, of, asked_of(each, of, facts), mode, request_id="", is_tried=False) for each, of in launches]
        judged = await asyncio.gather(*asked)
        ranks = [_rank(answer, is_sure=not each.is_partial) for answer, (each, _) in zip(judged, launches, strict=True)]
        place = ranks.index(max(ranks))
        fits = judged[place].verdict == Verdict.VERDICT_ADMIT
        return *launches[place], "" if fits else f"launch {place + 1} of {len(launches)}"

    def _wishes(self, admission: Admission) -> Wishes:
        may_override = self.rules().may_override(admission.user, admission.groups)
        return Wishes(try_reason=admission.annotation(TRY), override=admission.annotation(OVERRIDE), may_override=may_override)

    async def _mutated(self, admission: Admission, mode: Mode) -> Decided:
        """Nothing in the mode audit, of which the submitter is to notice nothing."""
        if mode not in TOLD:
            return Decided()
        read = await self._read(admission)
        facts = self._facts(admission, read)
        if read.job is None or _is_without_gpus(admission, read, facts):
            return Decided()
        read, job, _ = await self._hardest(admission, read, read.job, facts, mode)
        asked, request_id = asked_of(read, job, facts), "" if admission.is_dry_run else str(uuid.uuid4())
        judged = await self._judged(admission, job, asked, mode, request_id=request_id, is_tried=False)
        loop = asyncio.get_running_loop()
        return Decided(answer=Answer(patch=await loop.run_in_executor(self.executor, patch_of, admission.object, judged, facts)))

    def _facts(self, admission: Admission, read: Read) -> Facts:
        return with_devices(self.facts(), admission.namespace, read.devices)

    async def _read(self, admission: Admission) -> Read:
        beside = await self.cluster.named_by(admission.object)
        return await asyncio.get_running_loop().run_in_executor(self.executor, read_object, admission, beside)

    async def _judged(
        self, admission: Admission, job: TrainingJob, cards: AskedCards, mode: Mode, *, request_id: str, is_tried: bool = True
    ) -> Judged:
        asked = Asked(
            job=job,
            cards=cards.cards,
            request_id=request_id,
            user=admission.user,
            try_reason=admission.annotation(TRY) if is_tried else "",
            named="" if joins_by_uid(admission.object) else admission.annotation(PREDICTION),
            may_judge_here=self.rules().judge_without_service,
        )
        return await self.jury.judge(asked, is_advised=is_tried and mode in TOLD)


def _rank(judged: Judged, *, is_sure: bool) -> tuple[int, bool, int]:
    """How hard a launch is to fit, the larger the harder: by its verdict, whether it surely runs, and what it needs."""
    answer = judged.judgement.answer
    return _RANKS.get(judged.verdict, 0), is_sure, answer.peak.bound_bytes if answer is not None else 0


def _is_without_gpus(admission: Admission, read: Read, facts: Facts) -> bool:
    """It is passed like a pod without GPUs."""
    return kind_of(admission) == TRAIN_JOB and trains_without_gpus(read, facts)


def _edit_of(read: Read) -> Callable[[Suggestion], str] | None:
    """What writes a suggestion in the words of the launch."""
    if read.source is None or read.source.launch is None:
        return None
    return partial(change_of, launch=read.source.launch, own=read.source.label)


def _id_of(admission: Admission) -> str:
    """The object's uid, by which whatever its pods report can be led back to the prediction; else a new one. What an update brings has one
    of its own."""
    try:
        found = uuid.UUID(admission.object_uid)
    except ValueError:
        return str(uuid.uuid4())
    content = content_of(admission)
    return str(uuid.uuid5(found, content) if content else found)
