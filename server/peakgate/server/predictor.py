"""Predict and its relatives, apart from the wire: gRPC and HTTP both call this."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from weakref import WeakValueDictionary

from peakgate.memory.prediction import FieldError
from peakgate.server.answer import unpack
from peakgate.server.asker import check_asker
from peakgate.server.audit import AuditQueue
from peakgate.server.clock import Clock, to_timestamp
from peakgate.server.decide import Ground
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.judge import Judge, Judged
from peakgate.server.limits import check_size
from peakgate.server.metrics import Metrics
from peakgate.server.observed import observation_message
from peakgate.server.pages import make_token, page_size, read_token
from peakgate.server.requests import SeenRequests, check_request_id
from peakgate.server.store.base import Store
from peakgate.server.store.records import PredictionRow, StoredPrediction
from peakgate.server.tries import Tries, add_to, name_of_request, try_message
from peakgate.server.wishes import wishes_of
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.callers import CALLERS, GRPC
from peakgate.v1.names import PREFIX
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict
from peakgate.v1.training_job_pb2 import TrainingJob

AWAY = "the database is away or slow: this answer rests on the last calibration that was read, and waits in memory to be stored"
UNKNOWN_REQUEST = "the database is away or slow: whether this request_id was answered before could not be looked up"
NOT_STORED = "this prediction was not stored, because the queue to the database is full: the job cannot be joined to it"

FITS = {True: "fits", False: "too_large"}
"""The metric's words."""

LOOKUP_SECONDS = 0.5
"""Wait to learn whether a request_id was answered before: a database that hangs (a frozen host, a lost route) refuses nothing, and an
answer must come before the three seconds are over that callers give it."""

BELOW_THE_VERSION = (1 << 76) - 1
"""Bits of a UUID that version 7 has like version 4: 12 random ones, the variant, 62 random ones."""


def new_name() -> str:
    """A new prediction's name: a UUID of version 7 (RFC 9562, section 5.7), whose first 48 bits are the milliseconds since the epoch.

    So names sort by their time, and tables whose keys hold one can be partitioned by it (docs/adr/0009-transactions-hold-everything.md).
    """
    milliseconds = time.time_ns() // 1_000_000
    return f"{PREFIX}{milliseconds << 80 | 7 << 76 | uuid.uuid4().int & BELOW_THE_VERSION:032x}"


class Predictor:
    """Judges jobs, stores the predictions, and finds them again."""

    def __init__(
        self,
        judge: Judge,
        store: Store,
        audit: AuditQueue,
        *,
        clock: Clock,
        metrics: Metrics,
        tries: Tries,
        seen: SeenRequests | None = None,
        name_of: Callable[[], str] = new_name,
    ) -> None:
        self._judge = judge
        self._store = store
        self._audit = audit
        self._clock = clock
        self._metrics = metrics
        self._tries = tries
        self._name_of = name_of
        self._seen = seen if seen is not None else SeenRequests()
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # a lock lives as long as a call holds it
        self._judging = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._glancing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="glance")
        self._advising = ThreadPoolExecutor(max_workers=1, thread_name_prefix="advise")  # a search does not hold up Predict
        self._hits = metrics.series("peakgate_answers_cached_total")
        self._verdicts = {
            (caller, number): metrics.series("peakgate_verdicts_total", source=caller, verdict=_word(number))
            for caller in CALLERS
            for number in Verdict.values()
            if number
        }
        self._grounds = {
            ground: metrics.series("peakgate_verdict_grounds_total", ground=ground.value.replace(" ", "_")) for ground in Ground
        }
        self._beside = {
            (active, shadow): metrics.series("peakgate_shadow_answers_total", active=FITS[active], shadow=FITS[shadow])
            for active, shadow in product((True, False), repeat=2)
        }

    def close(self) -> None:
        """Ends the threads that judge and advise."""
        for pool in (self._judging, self._glancing, self._advising):
            pool.shutdown(wait=False, cancel_futures=True)

    async def predict(self, request: pb.PredictRequest, *, caller: str = GRPC) -> PredictResponse:
        """The answer to a job. Raises PeakgateError when it cannot be judged, and then nothing is stored. `caller`: one of CALLERS."""
        answer = await self._predict(request)
        self._verdicts[caller, answer.verdict].add()
        return answer

    async def _predict(self, request: pb.PredictRequest) -> PredictResponse:
        job_bytes = request.job.SerializeToString(deterministic=True)
        check_size(request.job, len(job_bytes))
        check_asker(request.user, request.try_reason)
        if request.replay:
            return self._unkept(await self._replayed(job_bytes, request.user), request)
        if not self._store.keeps or request.validate_only:
            return self._unkept(await self._judged(job_bytes, request.user, brief=request.brief), request)
        if request.request_id:
            return await self._predict_once(request, job_bytes)
        return await self._stored(await self._judged(job_bytes, request.user, brief=request.brief), request)

    async def refused(self, job: TrainingJob, known: tuple[FieldError, ...]) -> PeakgateError:
        """One error that names the bad fields of a document and of the job that could be read from it."""
        check_size(job, job.ByteSize())
        return await asyncio.get_running_loop().run_in_executor(self._judging, self._judge.refused, job, known)

    async def suggest(self, request: pb.SuggestRequest) -> pb.SuggestResponse:
        """Changes for a job; nothing is stored. Raises PeakgateError when it cannot be judged."""
        if request.limit < 0:
            raise field_error("limit", f"is {request.limit}; state 0 for all")
        job_bytes = request.job.SerializeToString()
        check_size(request.job, len(job_bytes))
        job = TrainingJob.FromString(job_bytes)
        wishes = wishes_of(request.allow, request.keep, pareto=request.pareto)
        advised = await asyncio.get_running_loop().run_in_executor(self._advising, self._judge.advise, job, request.solve, wishes)
        solved = advised.solved.value
        return pb.SuggestResponse(
            prediction=advised.answer,
            suggestions=advised.suggestions[: request.limit or None],
            largest_micro_batch_size=advised.largest_micro_batch_size,
            smallest_gpu=advised.smallest_gpu,
            solved_field=request.solve,
            solved_value=solved if isinstance(solved, int) else 0,
            solved_number=solved if isinstance(solved, float) else 0.0,
            solved_limit=advised.solved.limit,
            cheapest_gpu=advised.cheapest_gpu,
            memory_fraction=advised.memory_fraction,
            notes=advised.notes,
            pareto=advised.pareto,
            shortfall=advised.shortfall,
            plans=advised.plans,
        )

    async def get(self, request: pb.GetPredictionRequest) -> pb.GetPredictionResponse:
        """A stored prediction, computed again with the current model. Raises PREDICTION_NOT_FOUND."""
        stored = await self._find(request.prediction)
        if stored is None:
            raise PeakgateError(
                "PREDICTION_NOT_FOUND",
                f"prediction: {request.prediction[:100]!r} is not known; predictions that no job uses expire",
                hint="list the known ones with `peakgate jobs`",
            )
        judged = await self._judged(stored.row.content.job, stored.row.user, brief=request.brief)
        answer = self._copy(judged, brief=request.brief)
        answer.prediction = stored.row.prediction
        then = unpack(stored.row.content.answer)
        if then.HasField("try_anyway"):
            add_to(answer, then.try_anyway)
        return pb.GetPredictionResponse(
            prediction=answer,
            job=TrainingJob.FromString(stored.row.content.job),
            stored=_summary(stored),
            observations=[observation_message(row) for row in stored.observations],
        )

    async def list(self, request: pb.ListPredictionsRequest) -> pb.ListPredictionsResponse:
        """Stored predictions, newest first."""
        size = page_size(request.page_size)
        kind = f"predictions observed={request.observed_only}{' tries' if request.tries_only else ''}"
        position = read_token(kind, request.page_token, places=(int, str))
        before = (int(position[0]), str(position[1])) if position is not None else None
        await self._audit.flush()
        wanted = {"observed_only": request.observed_only, "tries_only": request.tries_only}
        rows = await asyncio.to_thread(self._store.predictions, limit=size + 1, before=before, **wanted)
        last = rows[size - 1].row if len(rows) > size else None
        token = make_token(kind, last.created_us, last.prediction) if last is not None else ""
        return pb.ListPredictionsResponse(predictions=[_summary(row) for row in rows[:size]], next_page_token=token)

    async def _judged(self, job_bytes: bytes, user: str, *, brief: bool = False) -> Judged:
        """The answer; a brief one that was not computed before takes a thread of its own, behind no search for suggestions."""
        judged = self._judge.cached(job_bytes, user)
        if judged is not None:
            self._hits.add()
            return judged
        if brief:
            glance = partial(self._judge.judge, job_bytes, user, brief=True)
            return await asyncio.get_running_loop().run_in_executor(self._glancing, glance)
        judged = await asyncio.get_running_loop().run_in_executor(self._judging, self._judge.judge, job_bytes, user)
        self._judge.remember(job_bytes, judged, user)
        return judged

    async def _replayed(self, job_bytes: bytes, user: str) -> Judged:
        judge = partial(self._judge.judge, job_bytes, user, replay=True)
        return await asyncio.get_running_loop().run_in_executor(self._advising, judge)

    def _copy(self, judged: Judged, *, brief: bool) -> PredictResponse:
        answer = PredictResponse()
        answer.CopyFrom(judged.brief if brief else judged.answer)
        return answer

    def _counted(self, judged: Judged, *, brief: bool) -> PredictResponse:
        self._grounds[judged.ground].add()
        if judged.fits is not None:
            self._beside[judged.fits].add()
        for reason in judged.distrust:
            self._metrics.series("peakgate_answers_distrusted_total", reason=reason).add()
        return self._copy(judged, brief=brief)

    def _unkept(self, judged: Judged, request: pb.PredictRequest) -> PredictResponse:
        answer = self._counted(judged, brief=request.brief)
        if _wants_try(request, answer):
            self._tries.refuse_unkept(answer, request.user, request.try_reason)
        return answer

    async def _stored(
        self, judged: Judged, request: pb.PredictRequest, *, digest: str | None = None, is_away: bool = False
    ) -> PredictResponse:
        answer = self._counted(judged, brief=request.brief)
        row = PredictionRow(
            prediction=self._name_of(),
            created_us=self._clock(),
            request_id=request.request_id or None,
            request_digest=digest,
            content=judged.content,
            user=request.user,
        )
        if _wants_try(request, answer):
            named = replace(row, prediction=name_of_request(row.prediction, f"{request.request_id} {digest}")) if digest else row
            asked = await self._tries.ask(named, request.try_reason, is_away=is_away or not self._audit.writable)
            add_to(answer, asked.said)
            row = asked.row
            if asked.said.granted:  # and stored with its prediction
                answer.prediction = row.prediction
                return answer
        if self._audit.put(row):
            answer.prediction = row.prediction
        else:
            answer.warnings.append(NOT_STORED)
        if not self._audit.writable:
            answer.warnings.append(AWAY)
        return answer

    async def _predict_once(self, request: pb.PredictRequest, job_bytes: bytes) -> PredictResponse:
        """Idempotence: one answer an id, also to calls at the same time."""
        request_id = request.request_id
        check_request_id(request_id)
        digest = _digest(request, job_bytes)
        lock = self._under_way.setdefault(request_id, asyncio.Lock())
        async with lock:
            return await self._once(request, job_bytes, digest)

    async def _once(self, request: pb.PredictRequest, job_bytes: bytes, digest: str) -> PredictResponse:
        known, warnings = await self._answered(request.request_id)
        if known is None:
            judged = await self._judged(job_bytes, request.user, brief=request.brief)
            answer = await self._stored(judged, request, digest=digest, is_away=bool(warnings))
            self._seen.add(request.request_id)
            answer.warnings.extend(warnings)
            return answer
        if known.request_digest != digest:
            raise PeakgateError(
                "REQUEST_ID_REUSED",
                f"request_id: {request.request_id} was answered before, for another request",
                hint="make a new UUID for each new request",
            )
        return await self._again(known, brief=request.brief)

    async def _answered(self, request_id: str) -> tuple[PredictionRow | None, tuple[str, ...]]:
        waiting = self._audit.by_request(request_id)
        if waiting is not None or (request_id not in self._seen and not self._store.shared):
            return waiting, ()
        if not self._audit.writable:
            return None, (UNKNOWN_REQUEST,)
        try:
            stored = await asyncio.wait_for(asyncio.to_thread(self._store.by_request, request_id), LOOKUP_SECONDS)
        except (PeakgateError, TimeoutError):
            return None, (UNKNOWN_REQUEST,)
        return (stored.row if stored is not None else None), ()

    async def _again(self, row: PredictionRow, *, brief: bool) -> PredictResponse:
        """The stored answer; its timeline, which is not stored, is computed again."""
        judged = await self._judged(row.content.job, row.user, brief=brief)
        if judged.content.answer == row.content.answer:
            answer = self._counted(judged, brief=brief)
        else:
            answer = unpack(row.content.answer)
            answer.timeline.extend(() if brief else judged.answer.timeline)
            if brief:
                answer.ClearField("suggestions")
        answer.prediction = row.prediction
        return answer

    async def _find(self, name: str) -> StoredPrediction | None:
        waiting = self._audit.by_name(name)
        if waiting is not None:
            return StoredPrediction(row=waiting, state="", observed_device_bytes=0)
        return await asyncio.to_thread(self._store.prediction, name)


def _wants_try(request: pb.PredictRequest, answer: PredictResponse) -> bool:
    return bool(request.try_reason) and answer.verdict == Verdict.VERDICT_REJECT


def _digest(request: pb.PredictRequest, job_bytes: bytes) -> str:
    """Of all that the answer depends on. Without an asker it is that of earlier versions, whose rows are there."""
    asker = f"{request.user}\0{request.try_reason}".encode() if request.user or request.try_reason else b""
    return hashlib.sha256(job_bytes + (b"\x01" if request.brief else b"\x00") + asker).hexdigest()


def _summary(stored: StoredPrediction) -> pb.PredictionSummary:
    row, answer = stored.row, unpack(stored.row.content.answer)
    return pb.PredictionSummary(
        prediction=row.prediction,
        job_name=row.content.job_name,
        create_time=to_timestamp(row.created_us),
        verdict=answer.verdict,
        reason=answer.reason,
        peak=answer.peak,
        capacity=answer.capacity if answer.HasField("capacity") else None,
        calibration=answer.calibration,
        observed_device_bytes=stored.observed_device_bytes,
        state=stored.state,
        model_version=row.content.model_version,
        observation=observation_message(stored.observations[0]) if stored.observations else None,
        user=row.user,
        tried=try_message(stored),
    )


def _word(verdict: int) -> str:
    return Verdict.Name(Verdict.ValueType(verdict)).removeprefix("VERDICT_")
