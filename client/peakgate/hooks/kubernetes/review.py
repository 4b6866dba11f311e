"""From the body of a review to the body of its answer: skipped, or read, judged, decided, within a deadline. Never denies on a guess."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from peakgate.hooks.change import change_of
from peakgate.hooks.kubernetes.admission import Admission, Answer, Object, parse_review, response_of
from peakgate.hooks.kubernetes.candidates import Cards
from peakgate.hooks.kubernetes.facts import Facts, with_devices
from peakgate.hooks.kubernetes.joining import joins_by_uid
from peakgate.hooks.kubernetes.judging import Asked, Judged, Jury
from peakgate.hooks.kubernetes.metrics import WebhookMetrics
from peakgate.hooks.kubernetes.mutating import patch_of
from peakgate.hooks.kubernetes.reading import Read, read_object
from peakgate.hooks.kubernetes.rules import TOLD, Mode, Rules
from peakgate.hooks.kubernetes.verdicts import (
    FAULT,
    MODE,
    OVERRIDE,
    PREDICTION,
    TRY,
    Case,
    Decided,
    Wishes,
    decide,
    not_judged,
)
from peakgate.hooks.kubernetes.workload_cards import cards_of_workload
from peakgate.hooks.kubernetes.workloads import CREATE, OTHER_KIND, TRAIN_JOB, asks_for_gpus, is_owned, kind_of, might_train, names_a_gpu

DEADLINE_SECONDS = 1.7
"""An answer leaves within two, and the API server waits for three."""

GPU_FIELDS = frozenset({"gpu.type", "gpu.memory_bytes"})
Tell = Callable[[str, str], None]


class Cluster(Protocol):
    """What is known of the cluster beside the object under review. Nothing raises; what is not known in time is left out."""

    async def named_by(self, workload: Object) -> Sequence[Object]:
        """Config maps and the training runtime that a workload names."""

    async def modes_of(self, namespace: str) -> Sequence[str]:
        """What the namespace's own label wishes for."""


@dataclass(frozen=True, slots=True)
class NoCluster:
    """A webhook that may not read the cluster."""

    async def named_by(self, workload: Object) -> Sequence[Object]:  # noqa: ARG002 - a form of Cluster
        """Nothing."""
        return ()

    async def modes_of(self, namespace: str) -> Sequence[str]:  # noqa: ARG002 - a form of Cluster
        """Nothing."""
        return ()


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
        return await self._reviewed(body, self._validated)

    async def mutate(self, body: bytes) -> bytes:
        """The answer to a review of the mutating webhook: allowed, with what is added. Raises ReviewError for what is none."""
        return await self._reviewed(body, self._mutated)

    async def _reviewed(self, body: bytes, decided_by: Callable[[Admission, Mode], Awaitable[Decided]]) -> bytes:
        began = time.perf_counter()
        admission = parse_review(body)
        kind, mode = kind_of(admission), Mode.warn
        try:
            async with asyncio.timeout(self.deadline_seconds):
                mode = await self._mode(admission, kind)
                decided = Decided() if mode is Mode.off else await decided_by(admission, mode)
        except TimeoutError:
            decided = not_judged(mode)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody's job hangs on it
            self.tell("error", f"fault in the webhook, admitted unchecked: {type(error).__name__}: {error}")
            decided = Decided(answer=not_judged(mode).answer, outcome=FAULT)
        self.metrics.reviews.labels(kind, decided.verdict, decided.outcome).inc()
        self.metrics.seconds.observe(time.perf_counter() - began)
        return response_of(admission, decided.answer)

    async def _mode(self, admission: Admission, kind: str) -> Mode:
        """off as well for what is not judged in any mode."""
        if kind == OTHER_KIND or admission.operation != CREATE or is_owned(admission) or not asks_for_gpus(admission):
            return Mode.off
        labels = [admission.label(MODE), *await self.cluster.modes_of(admission.namespace)]
        return self.rules().mode_of(admission.namespace, labels)

    async def _validated(self, admission: Admission, mode: Mode) -> Decided:
        read = await self._read(admission)
        if _asks_for_none(admission, read, self._facts(admission, read)):
            return Decided()
        if read.job is None:
            is_silent = read.is_unknown and not might_train(admission, is_other=read.is_other)
            return Decided() if is_silent else not_judged(mode, read.problem)
        judged = await self._judged(admission, read, mode, request_id="" if admission.is_dry_run else _id_of(admission))
        rules, launch = self.rules(), read.source.launch if read.source is not None else None
        override = admission.annotation(OVERRIDE)
        wishes = Wishes(
            try_reason=admission.annotation(TRY),
            override=override,
            may_override=bool(override) and rules.may_override(admission.user, admission.groups),
        )
        return decide(
            Case(
                judged=judged,
                mode=mode,
                wishes=wishes,
                is_partial=read.is_partial,
                is_dry_run=admission.is_dry_run,
                sources=read.sources,
                edit=partial(change_of, launch=launch) if launch is not None else None,
            )
        )

    async def _mutated(self, admission: Admission, mode: Mode) -> Decided:
        read = await self._read(admission)
        if read.job is None or _asks_for_none(admission, read, self._facts(admission, read)):
            return Decided()
        judged = await self._judged(admission, read, mode, request_id="" if admission.is_dry_run else str(uuid.uuid4()), is_tried=False)
        return Decided(answer=Answer(patch=patch_of(admission.object, judged)))

    def _facts(self, admission: Admission, read: Read) -> Facts:
        return with_devices(self.facts(), admission.namespace, read.devices)

    async def _read(self, admission: Admission) -> Read:
        beside = await self.cluster.named_by(admission.object)
        return await asyncio.get_running_loop().run_in_executor(self.executor, read_object, admission, beside)

    async def _judged(self, admission: Admission, read: Read, mode: Mode, *, request_id: str, is_tried: bool = True) -> Judged:
        assert read.job is not None  # noqa: S101 - asked by the callers
        asked = Asked(
            job=read.job,
            cards=Cards() if _own_fields(read) & GPU_FIELDS else cards_of_workload(read.pods, self._facts(admission, read)),
            request_id=request_id,
            user=admission.user,
            try_reason=admission.annotation(TRY) if is_tried else "",
            named="" if joins_by_uid(admission.object) else admission.annotation(PREDICTION),
            may_judge_here=self.rules().judge_without_service,
        )
        return await self.jury.judge(asked, is_advised=is_tried and mode in TOLD)


def _asks_for_none(admission: Admission, read: Read, facts: Facts) -> bool:
    """Whether a TrainJob trains without GPUs, which only its runtime tells: it is passed like a pod without GPUs. Not where the runtime
    could not be read, a resource of a name of the cluster's own may be one, or the job states its GPU."""
    if kind_of(admission) != TRAIN_JOB or not read.pods or read.is_partial or _own_fields(read) & GPU_FIELDS:
        return False
    return not any(names_a_gpu(each) for each in read.pods) and not cards_of_workload(read.pods, facts).has_gpus


def _own_fields(read: Read) -> frozenset[str]:
    """What the submitter states in peakgate's own words."""
    return frozenset(read.source.launch.reading.own) if read.source is not None and read.source.launch is not None else frozenset()


def _id_of(admission: Admission) -> str:
    """The object's uid, by which whatever its pods report can be led back to the prediction; else a new one."""
    try:
        return str(uuid.UUID(admission.object_uid))
    except ValueError:
        return str(uuid.uuid4())
