"""The Python client: one object for the service, wherever it runs.

    with open_client() as client:
        answer = client.predict(parse_job({"model": {"preset": "llama-3.1-8b"}, "gpu": {"type": "h100-80gb"}}))

Every call has its own timeout. A call is repeated when the service is unavailable; Predict carries a request id, so that a
repeat is answered with the same prediction and stored once.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from queue import Queue
from threading import Thread
from typing import TypeAlias

import grpc

from peakgate.client.calibrations import Calibrations
from peakgate.client.calling import called, paged
from peakgate.client.errors import InputError, PeakgateError, ServiceError
from peakgate.v1.callers import GRPC, user_agent
from peakgate.v1.catalog_service_pb2 import (
    GetJobSchemaRequest,
    ListDefaultsRequest,
    ListDefaultsResponse,
    ListGpusRequest,
    ListGpusResponse,
    ListModelsRequest,
    ListModelsResponse,
)
from peakgate.v1.catalog_service_pb2_grpc import CatalogServiceStub
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2 import (
    GetPredictionRequest,
    GetPredictionResponse,
    ListPredictionsRequest,
    PredictionSummary,
    PredictRequest,
    SuggestRequest,
    SuggestResponse,
)
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2 import ListCardsRequest, NodeCard, ReportJobEventRequest, ReportPeaksRequest, ReportPeaksResponse
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

PREDICT_TIMEOUT_SECONDS = 2.0
"""A gate in front of a queue waits no longer; the service answers in milliseconds."""

CALL_TIMEOUT_SECONDS = 15.0
"""Suggest solves a job many times, lists read a database."""

EMBEDDED_TIMEOUT_SECONDS = 120.0
"""In the same process a deadline protects nobody; it only ends a call that hangs."""

IN_FLIGHT = 16
"""Calls of one batch at a time: enough to hide the round trip, few enough that none waits out its deadline in a queue."""

_ONCE = ("RollbackCalibration", "ShadowCalibration", "ReleaseObservation")
"""What a repeat would do a second time, or be refused for."""

_RETRY_POLICY = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        },
        {"name": [{"service": "peakgate.v1.CalibrationService", "method": each} for each in _ONCE]},
    ]
}
"""gRFC A6; repeats are safe because Predict has a request id and the other calls change nothing a second time."""

_OPTIONS = (
    ("grpc.service_config", json.dumps(_RETRY_POLICY)),
    ("grpc.max_receive_message_length", 16 * 2**20),
)

Outcome: TypeAlias = PredictResponse | PeakgateError
"""What became of one job of a batch."""

_Call: TypeAlias = "PeakgateError | _Completing | grpc.Future[PredictResponse]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who submits a job (empty: nobody in particular), and why it should run though it is rejected (empty: it should not)."""

    user: str = ""
    try_reason: str = ""


NOBODY = Asker()


@dataclass(frozen=True, slots=True)
class _Completing:
    """A document that is no job, and the call that finds out what else is wrong with it."""

    error: InputError
    call: grpc.Future[PredictResponse]


@dataclass(frozen=True, slots=True)
class _SourceFault:
    """What went wrong while jobs were read; in a wrapper, because a call of gRPC is an exception too."""

    error: BaseException


class Client:
    """Calls of the services over one channel. Every method raises ServiceError."""

    def __init__(self, channel: grpc.Channel, *, predict_timeout_seconds: float, call_timeout_seconds: float) -> None:
        self._predictions = PredictionServiceStub(channel)
        self._catalog = CatalogServiceStub(channel)
        self._telemetry = TelemetryServiceStub(channel)
        self.calibrations = Calibrations(channel, timeout_seconds=call_timeout_seconds)
        self._predict_timeout_seconds = predict_timeout_seconds
        self._call_timeout_seconds = call_timeout_seconds

    def predict(
        self, job: TrainingJob, *, brief: bool = False, validate_only: bool = False, asker: Asker = NOBODY, request_id: str = ""
    ) -> PredictResponse:
        """The service's answer to one job. A `request_id` of the caller's own makes the same call of another process the same request."""
        request = _predict_request(job, brief=brief, validate_only=validate_only, asker=asker)
        request.request_id = request_id or request.request_id
        return called(lambda: self._predictions.Predict(request, timeout=self._predict_timeout_seconds))

    def explain(self, job: TrainingJob) -> PredictResponse:
        """The answer with reserved and required bytes from a replay of every allocation; nothing is stored."""
        request = PredictRequest(job=job, replay=True)
        return called(lambda: self._predictions.Predict(request, timeout=self._call_timeout_seconds))

    def predict_each(self, jobs: Iterable[TrainingJob | PeakgateError], *, brief: bool = False, asker: Asker = NOBODY) -> Iterator[Outcome]:
        """Answers in the order of `jobs`, with several calls in flight; an error in a job's place is passed through.

        `jobs` is read by a thread of its own, so that an answer never waits for a job that its sender has not written yet.
        """
        calls: Queue[_Call | _SourceFault | None] = Queue(maxsize=IN_FLIGHT)
        Thread(target=self._feed, args=(jobs, calls), kwargs={"brief": brief, "asker": asker}, daemon=True).start()
        while (call := calls.get()) is not None:
            if isinstance(call, _SourceFault):
                raise call.error
            yield _finished(call)

    def _feed(
        self, jobs: Iterable[TrainingJob | PeakgateError], calls: Queue[_Call | _SourceFault | None], *, brief: bool, asker: Asker
    ) -> None:
        try:
            for job in jobs:
                calls.put(self._asked(job) if isinstance(job, PeakgateError) else self._start(job, brief=brief, asker=asker))
        except BaseException as error:  # noqa: BLE001 - it is raised again where the answers are read
            calls.put(_SourceFault(error))
        calls.put(None)

    @contextmanager
    def naming_every_field(self) -> Iterator[None]:
        """A document that is read inside and is no job: its error names what the service finds beside it as well."""
        try:
            yield
        except InputError as error:
            asked = self._asked(error)
            raise (_finished_error(asked) if isinstance(asked, _Completing) else asked) from error

    def _asked(self, error: PeakgateError) -> PeakgateError | _Completing:
        if not isinstance(error, InputError) or error.readable is None:
            return error
        return _Completing(error, self._start(error.readable, brief=True, validate_only=True))

    def _start(self, job: TrainingJob, *, brief: bool, validate_only: bool = False, asker: Asker = NOBODY) -> grpc.Future[PredictResponse]:
        request = _predict_request(job, brief=brief, validate_only=validate_only, asker=asker)
        return self._predictions.Predict.future(request, timeout=self._predict_timeout_seconds)

    def suggest(
        self,
        job: TrainingJob,
        *,
        solve: str = "",
        limit: int = 0,
        allow: Sequence[str] = (),
        keep: Sequence[str] = (),
        pareto: bool = False,
    ) -> SuggestResponse:
        """Changes that make a job fit, best first, within what is allowed and kept; `solve` names a numeric field to invert."""
        request = SuggestRequest(job=job, solve=solve, limit=limit, allow=allow, keep=keep, pareto=pareto)
        return called(lambda: self._predictions.Suggest(request, timeout=self._call_timeout_seconds))

    def get_prediction(self, prediction: str) -> GetPredictionResponse:
        """A stored prediction by its name, `predictions/…`."""
        request = GetPredictionRequest(prediction=prediction)
        return called(lambda: self._predictions.GetPrediction(request, timeout=self._call_timeout_seconds))

    def list_predictions(self, *, limit: int = 50, observed_only: bool = False, tries_only: bool = False) -> list[PredictionSummary]:
        """The newest stored predictions, at most `limit`; `tries_only`: rejected jobs that were let run all the same."""

        def page(size: int, token: str) -> tuple[Sequence[PredictionSummary], str]:
            request = ListPredictionsRequest(page_size=size, page_token=token, observed_only=observed_only, tries_only=tries_only)
            answer = called(lambda: self._predictions.ListPredictions(request, timeout=self._call_timeout_seconds))
            return answer.predictions, answer.next_page_token

        return paged(page, limit=limit)

    def report_peaks(self, batch: ReportPeaksRequest) -> ReportPeaksResponse:
        """Reports observed peaks; the answer names every row that was refused. A repeat changes nothing."""
        return called(lambda: self._telemetry.ReportPeaks(batch, timeout=self._call_timeout_seconds))

    def report_job_event(self, event: ReportJobEventRequest) -> None:
        """Reports the start or the end of a job. A repeat changes nothing."""
        called(lambda: self._telemetry.ReportJobEvent(event, timeout=self._call_timeout_seconds))

    def list_cards(self, *, cluster: str = "") -> list[NodeCard]:
        """The kinds of card that agents have seen, by cluster, node, name and memory."""

        def page(size: int, token: str) -> tuple[Sequence[NodeCard], str]:
            request = ListCardsRequest(cluster=cluster, page_size=size, page_token=token)
            answer = called(lambda: self._telemetry.ListCards(request, timeout=self._call_timeout_seconds))
            return answer.cards, answer.next_page_token

        return paged(page)

    def list_models(self) -> ListModelsResponse:
        """Models that a job may name."""
        return called(lambda: self._catalog.ListModels(ListModelsRequest(), timeout=self._call_timeout_seconds))

    def list_gpus(self) -> ListGpusResponse:
        """GPUs that a job may name."""
        return called(lambda: self._catalog.ListGpus(ListGpusRequest(), timeout=self._call_timeout_seconds))

    def list_defaults(self) -> ListDefaultsResponse:
        """What a framework does when a job does not say."""
        return called(lambda: self._catalog.ListDefaults(ListDefaultsRequest(), timeout=self._call_timeout_seconds))

    def job_schema(self) -> str:
        """JSON Schema of the job document, as text."""
        return called(lambda: self._catalog.GetJobSchema(GetJobSchemaRequest(), timeout=self._call_timeout_seconds)).json


@contextmanager
def connect(target: str, *, predict_timeout_seconds: float = PREDICT_TIMEOUT_SECONDS, caller: str = GRPC) -> Iterator[Client]:
    """A client of the service at `target` (host:port), which counts it by `caller`. Nothing is sent before the first call."""
    with grpc.insecure_channel(target, options=(*_OPTIONS, user_agent(caller))) as channel:
        yield Client(channel, predict_timeout_seconds=predict_timeout_seconds, call_timeout_seconds=CALL_TIMEOUT_SECONDS)


def names_a_store(server: str | None, db: str | None) -> bool:
    """Whether predictions of an earlier command can be found: a service inside this one keeps nothing by itself."""
    return bool(server or db or os.environ.get("PEAKGATE_SERVER") or os.environ.get("PEAKGATE_DATABASE_URL"))


def require_store(server: str | None, db: str | None) -> None:
    """Raises InputError when neither a service nor a database is named."""
    if not names_a_store(server, db):
        raise InputError(
            "neither a service nor a database is named, so no stored prediction can be found: give --server or --db, or set "
            "PEAKGATE_SERVER or PEAKGATE_DATABASE_URL",
            reason="STORE_UNNAMED",
        )


@contextmanager
def open_client(server: str | None = None, db: str | None = None) -> Iterator[Client]:
    """A client of `server`, else of PEAKGATE_SERVER, else of a service inside this process.

    The embedded service keeps what it predicts in the database `db` (else PEAKGATE_DATABASE_URL), and nothing without one.
    Raises InputError when both are named, or when the packages of the embedded service are not installed.
    """
    if server and db:
        raise InputError("--server and --db exclude each other: a server has its own database", reason="USAGE")
    target = server or (None if db else os.environ.get("PEAKGATE_SERVER"))
    if target:
        with connect(target) as client:
            yield client
        return
    with _open_embedded(db or os.environ.get("PEAKGATE_DATABASE_URL") or None) as client:
        yield client


def open_embedded_client() -> AbstractContextManager[Client]:
    """A client of a service inside this process that keeps nothing, whatever the environment names."""
    return _open_embedded(None)


@contextmanager
def _open_embedded(database_url: str | None) -> Iterator[Client]:
    with embedded_target(database_url) as target, grpc.insecure_channel(target, options=_OPTIONS) as channel:
        yield Client(channel, predict_timeout_seconds=EMBEDDED_TIMEOUT_SECONDS, call_timeout_seconds=EMBEDDED_TIMEOUT_SECONDS)


@contextmanager
def embedded_target(database_url: str | None = None) -> Iterator[str]:
    """A service inside this process, as the target of a channel. Raises InputError when its packages are not installed."""
    try:
        from peakgate.server.embedded import open_embedded
        from peakgate.server.errors import PeakgateError as ServerError
    except ImportError as error:
        raise InputError(
            f"the service inside the command needs {error.name}: pip install 'peakgate[server]', or name a running one with --server",
            reason="PACKAGE_MISSING",
        ) from error
    try:
        with open_embedded(database_url) as target:
            yield target
    except ServerError as error:  # the database cannot be used
        raise PeakgateError(error.message, code=error.code.name, reason=error.reason) from error


def _predict_request(job: TrainingJob, *, brief: bool, validate_only: bool, asker: Asker) -> PredictRequest:
    return PredictRequest(
        job=job,
        request_id=str(uuid.uuid4()),
        brief=brief,
        validate_only=validate_only,
        user=asker.user,
        try_reason=asker.try_reason,
    )


def _finished_error(asked: _Completing) -> InputError:
    """The error with every bad field; a service that is away, or finds nothing, leaves it as it is."""
    try:
        asked.call.result()
    except grpc.RpcError as error:
        return asked.error.completed(ServiceError.from_call(error).fields)
    return asked.error


def _finished(call: _Call) -> Outcome:
    if isinstance(call, PeakgateError):
        return call
    if isinstance(call, _Completing):
        return _finished_error(call)
    try:
        return call.result()
    except grpc.RpcError as error:
        return ServiceError.from_call(error)
