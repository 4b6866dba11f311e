"""Asks for a verdict: the service within its deadline, else the one that runs beside the hook and keeps nothing."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio

from peakgate.client.errors import ServiceError
from peakgate.client.slurm_defaults import SERVICE_SECONDS
from peakgate.hooks.breaker import Breaker
from peakgate.hooks.cache import Cache
from peakgate.v1.callers import SLURM, user_agent
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2 import GetPredictionRequest, GetPredictionResponse, PredictRequest
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

if TYPE_CHECKING:  # types of the generated stubs, absent at run time
    from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceAsyncStub

Answer = TypeVar("Answer")

HEAD_START_SECONDS = 0.05
"""The service has so long for itself; then the one beside begins as well, so that its answer is there at the service's deadline."""

SERVICE, BESIDE, STORED, NOBODY = "service", "beside", "stored", "nobody"
AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "DATA_LOSS"})
"""gRPC codes of a service that is not there for this call; with any other one it speaks of the job."""

OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.enable_retries", 0),
)
"""A service that comes back is found within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`answer`: None where nobody could judge; `problem` says why in words, `reason` is the error's own. `is_away`: nobody answered at all.
    `is_brief`: no change was looked for that would make the job fit."""

    answer: PredictResponse | None = None
    by: str = NOBODY
    problem: str = ""
    reason: str = ""
    is_away: bool = False
    is_brief: bool = False


class Service:
    """Calls of one service over one channel that stays open. The service counts them by `caller`, one of CALLERS."""

    def __init__(self, target: str, *, caller: str = SLURM) -> None:
        self.channel = grpc.aio.insecure_channel(target, options=(*OPTIONS, user_agent(caller)))
        self._stub: PredictionServiceAsyncStub = PredictionServiceStub(self.channel)

    async def predict(self, request: PredictRequest, seconds: float) -> PredictResponse:
        """The answer to a job. Raises ServiceError."""
        return await _called(self._stub.Predict(request, timeout=seconds))

    async def get(self, prediction: str, seconds: float, *, is_brief: bool = False) -> GetPredictionResponse:
        """A stored prediction; a brief one without the search for a change. Raises ServiceError."""
        return await _called(self._stub.GetPrediction(GetPredictionRequest(prediction=prediction, brief=is_brief), timeout=seconds))


async def _called(call: Awaitable[Answer]) -> Answer:
    try:
        return await call
    except grpc.RpcError as error:
        raise ServiceError.from_call(error) from error


@dataclass(kw_only=True)
class Judges:
    """`service` is None where none is named, `beside` where none runs. Answers to equal jobs are kept for a while."""

    service: Service | None = None
    beside: Callable[[], Service | None] = lambda: None
    breaker: Breaker = field(default_factory=Breaker)
    deadline_seconds: float = SERVICE_SECONDS
    answers: Cache[PredictResponse] = field(default_factory=Cache)
    on_away: Callable[[str], None] | None = None

    async def predict(self, job: TrainingJob, *, user: str, try_reason: str, may_judge_here: bool) -> Judgement:
        """The verdict on a job, without suggestions, whose search may take longer than a controller waits.

        What is kept is a user's own, whose margin may be another than that of others; a wish to try anyway is never answered from it.
        """
        key = (user, job.SerializeToString(deterministic=True))
        if not try_reason and (kept := self.answers.get(key)) is not None:
            return Judgement(answer=kept, by=SERVICE, is_brief=True)
        request = PredictRequest(job=job, request_id=str(uuid.uuid4()), brief=True, user=user, try_reason=try_reason)
        judgement = await self.ask(request, may_judge_here=may_judge_here)
        if judgement.by == SERVICE and judgement.answer is not None and not try_reason:
            self.answers.put(key, judgement.answer)
        return judgement

    async def stored(self, prediction: str, *, is_brief: bool = False) -> GetPredictionResponse | None:
        """What the service keeps under a name; None where it keeps nothing or is away. `is_brief`: no change is looked for."""
        if self.service is None or self.breaker.is_open:
            return None
        try:
            found = await self.service.get(prediction, self.deadline_seconds, is_brief=is_brief)
        except ServiceError as error:
            self._note(error)
            return None
        self.breaker.succeeded()
        return found

    async def ask(self, request: PredictRequest, *, may_judge_here: bool) -> Judgement:
        """The verdict on a request as it stands; nothing is kept here."""
        beside = self.beside() if may_judge_here else None
        if self.service is None or self.breaker.is_open:
            return await self._here(beside, request)
        asked = asyncio.ensure_future(self._there(self.service, request))
        async with _ended(asked):
            await asyncio.wait({asked}, timeout=HEAD_START_SECONDS)
            if asked.done() and not asked.result().is_away:
                return asked.result()
            here = asyncio.ensure_future(self._here(beside, request))
            async with _ended(here):
                there = await asked
                return await here if there.is_away else there

    async def _there(self, service: Service, request: PredictRequest) -> Judgement:
        try:
            answer = await service.predict(request, self.deadline_seconds)
        except ServiceError as error:
            self._note(error)
            return Judgement(problem=error.message, reason=error.reason, is_away=error.code in AWAY)
        self.breaker.succeeded()
        return Judgement(answer=answer, by=SERVICE, is_brief=True)

    async def _here(self, beside: Service | None, request: PredictRequest) -> Judgement:
        if beside is None:
            return Judgement(problem="the service does not answer", is_away=True)
        try:
            answer = await beside.predict(PredictRequest(job=request.job, brief=True), self.deadline_seconds)
        except ServiceError as error:
            return Judgement(problem=error.message, reason=error.reason, is_away=error.code in AWAY)
        answer.prediction = ""  # nothing is kept of it
        return Judgement(answer=answer, by=BESIDE, is_brief=True)

    def _note(self, error: ServiceError) -> None:
        if error.code in AWAY:
            self.breaker.failed()
            if self.on_away is not None:
                self.on_away(error.code)
        else:
            self.breaker.succeeded()


@contextlib.asynccontextmanager
async def _ended(task: asyncio.Future[Judgement]) -> AsyncIterator[None]:
    """A call that nobody waits for any longer is cancelled."""
    try:
        yield
    finally:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
