"""A small real gRPC service for tests of the client: it answers by the name of the job, and notes what it was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.code_pb2 import INVALID_ARGUMENT
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from peakgate.v1.prediction_pb2 import Capacity, LedgerLine, Peak, PredictResponse, Suggestion, TimelinePoint, Verdict
from peakgate.v1.prediction_service_pb2 import (
    GetPredictionRequest,
    GetPredictionResponse,
    ListPredictionsRequest,
    ListPredictionsResponse,
    PredictionSummary,
    PredictRequest,
    SuggestRequest,
    SuggestResponse,
)
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceServicer, add_PredictionServiceServicer_to_server

GB = 10**9


def an_answer(**fields: object) -> PredictResponse:
    """A rejection with every part filled, and what a test is about."""
    answer = PredictResponse(
        prediction="predictions/abc",
        verdict=Verdict.VERDICT_REJECT,
        reason="activations: 91.8 GB of 116.1 GB",
        peak=Peak(live_bytes=115 * GB, allocated_bytes=116 * GB, reserved_bytes=118 * GB, device_bytes=119 * GB),
        capacity=Capacity(gpu="h100-80gb", total_bytes=85 * GB, usable_bytes=84 * GB),
        peak_phase="backward",
        oom_phase="forward",
        ledger=[
            LedgerLine(category="activations", item="24 layers", bytes=92 * GB),
            LedgerLine(category="runtime", item="context", bytes=GB),
        ],
        timeline=[TimelinePoint(phase="forward", label=f"layer {n}", allocated_bytes=n * GB) for n in range(30)],
        suggestions=[Suggestion(title="FlashAttention", bound_bytes=52 * GB, fits=True, relative_step_time=0.9, why="no scores are kept")],
        assumptions=["optimizer.name is adamw"],
        warnings=["a warning"],
    )
    answer.peak.required_bytes, answer.peak.bound_bytes, answer.peak.coverage = 117 * GB, 120 * GB, 0.95
    answer.suggestions[0].changes["attention.implementation"].string_value = "flash"
    answer.MergeFrom(PredictResponse(**fields))  # type: ignore[arg-type]  # protobuf checks the types
    return answer


class Service(PredictionServiceServicer):
    """The job's name says what happens: `slow`, `bad`, `crash`, `flaky N` (unavailable N times), or a verdict."""

    def __init__(self) -> None:
        self.requests: list[PredictRequest] = []
        self.running = 0
        self.most_running = 0
        self._lock = threading.Lock()

    def Predict(self, request: PredictRequest, context: grpc.ServicerContext) -> PredictResponse:
        """Answers by name; the reason repeats the name, so that a test sees whose answer it is."""
        with self._lock:
            self.requests.append(request)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            self._misbehave(request, context)
        finally:
            with self._lock:
                self.running -= 1
        word = request.job.name.split("-")[0]
        verdict = Verdict.Value(f"VERDICT_{word}") if word in ("ADMIT", "REJECT", "UNDECIDED") else Verdict.VERDICT_ADMIT
        name = "" if request.validate_only else "predictions/1"
        return PredictResponse(verdict=verdict, reason=f"about {request.job.name}", prediction=name)

    def _misbehave(self, request: PredictRequest, context: grpc.ServicerContext) -> None:
        name = request.job.name
        seen = sum(1 for each in self.requests if each.request_id == request.request_id)
        if name.startswith("slow"):
            time.sleep(0.05)
        if name == "asleep":
            time.sleep(1.0)
        if name.startswith("flaky") and seen <= int(name.split()[1]):
            context.abort(grpc.StatusCode.UNAVAILABLE, "starting")
        if name == "crash":
            context.abort(grpc.StatusCode.INTERNAL, "something went wrong, id 7")
        if name == "bad":
            context.set_trailing_metadata((("grpc-status-details-bin", bad_field_status().SerializeToString()),))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "one bad field")

    def ListPredictions(self, request: ListPredictionsRequest, context: grpc.ServicerContext) -> ListPredictionsResponse:
        """Two predictions a page, five in all."""
        first = int(request.page_token or 0)
        rows = [PredictionSummary(prediction=f"predictions/{n}") for n in range(first, min(first + min(request.page_size, 2), 5))]
        end = first + len(rows)
        return ListPredictionsResponse(predictions=rows, next_page_token=str(end) if end < 5 else "")

    def Suggest(self, request: SuggestRequest, context: grpc.ServicerContext) -> SuggestResponse:
        """The job as it is, and nothing to change."""
        return SuggestResponse(prediction=an_answer(), solved_field=request.solve)

    def GetPrediction(self, request: GetPredictionRequest, context: grpc.ServicerContext) -> GetPredictionResponse:
        """The answer under the name that was asked for."""
        return GetPredictionResponse(prediction=an_answer(prediction=request.prediction))


def bad_field_status() -> Status:
    """INVALID_ARGUMENT with the details that the contract promises."""
    status = Status(code=INVALID_ARGUMENT, message="one bad field")
    violation = BadRequest.FieldViolation(field="batch.micro_batch_size", description="is -1, needs at least 1")
    for detail in (ErrorInfo(reason="FIELD_INVALID", domain="peakgate.io"), BadRequest(field_violations=[violation])):
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


@contextmanager
def running_service() -> Iterator[tuple[Service, str]]:
    """The service on a free port of loopback: (service, host:port)."""
    service = Service()
    server = grpc.server(ThreadPoolExecutor(max_workers=32))
    add_PredictionServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield service, f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
