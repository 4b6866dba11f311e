"""Builders for the gate's tests: answers, submissions, a service that answers as it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from google.protobuf.message import Message

from peakgate.hooks.slurm.submission import Submission, submission_of
from peakgate.v1.prediction_pb2 import Capacity, LedgerLine, Peak, PredictResponse, Suggestion, Verdict
from peakgate.v1.prediction_service_pb2 import (
    GetPredictionRequest,
    GetPredictionResponse,
    ListPredictionsRequest,
    ListPredictionsResponse,
    PredictRequest,
    SuggestRequest,
    SuggestResponse,
)
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceServicer, add_PredictionServiceServicer_to_server
from peakgate.v1.training_job_pb2 import TrainingJob

if TYPE_CHECKING:  # generic for the type checker only
    Context = grpc.aio.ServicerContext[Message, Message]

GB = 1_000_000_000
TRAINING = """#!/bin/bash
torchrun --nproc_per_node=$SLURM_GPUS_ON_NODE --nnodes=$SLURM_NNODES pretrain_gpt.py --num-layers 4 --hidden-size 4096 \\
  --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 \\
  --vocab-size 50257 --bf16
"""


def an_answer(verdict: str = "ADMIT", *, prediction: str = "predictions/0123abcd", need: int = 60, card: int = 80) -> PredictResponse:
    """An answer; a rejected job has activations that are too large."""
    return PredictResponse(
        prediction=prediction,
        verdict=Verdict.Value(f"VERDICT_{verdict}"),
        reason=f"{'activations: too large' if verdict == 'REJECT' else 'fits'}",
        peak=Peak(required_bytes=need * GB, bound_bytes=need * GB),
        capacity=Capacity(gpu="h100-80gb", total_bytes=card * GB, usable_bytes=card * GB),
        peak_phase="backward",
        ledger=[LedgerLine(category="activations", item="x", bytes=need * GB)],
    )


def rejected(**more: object) -> PredictResponse:
    """An answer that refuses."""
    return an_answer("REJECT", need=90, **more)  # type: ignore[arg-type]


def a_suggestion() -> Suggestion:
    """One that fits."""
    return Suggestion(title="halve the micro-batch", fits=True, bound_bytes=50 * GB, relative_step_time=1.1)


def a_submission(**fields: object) -> Submission:
    """A submission of two cards."""
    return submission_of({"tres_per_node": "gres:gpu:h100:2", "min_nodes": 1, "max_nodes": 1, "partition": "gpu", **fields})


def a_job(**fields: object) -> TrainingJob:
    """A job for eight cards."""
    job = TrainingJob()
    job.model.preset = "gpt2"
    job.gpu.type, job.gpu.count = "h100-80gb", 8
    job.parallelism.world_size = 8
    for name, value in fields.items():
        block, _, leaf = name.partition("__")
        setattr(getattr(job, block), leaf, value)
    return job


@dataclass
class Answering(PredictionServiceServicer):
    """Answers Predict with `answer`, after `before`; notes what it was asked."""

    answer: Callable[[PredictRequest], PredictResponse] = lambda request: an_answer()
    stored: Mapping[str, GetPredictionResponse] = field(default_factory=dict)
    asked: list[PredictRequest] = field(default_factory=list)
    code: grpc.StatusCode | None = None
    seconds: float = 0.0

    async def Predict(self, request: PredictRequest, context: Context) -> PredictResponse:
        """The answer."""
        self.asked.append(request)
        await asyncio.sleep(self.seconds)
        if self.code is not None:
            await context.abort(self.code, "as told")
        return self.answer(request)

    async def GetPrediction(self, request: GetPredictionRequest, context: Context) -> GetPredictionResponse:
        """What is stored."""
        if request.prediction not in self.stored:
            await context.abort(grpc.StatusCode.NOT_FOUND, "not known")
        return self.stored[request.prediction]

    async def Suggest(self, request: SuggestRequest, context: Context) -> SuggestResponse:
        """Never asked."""
        raise NotImplementedError

    async def ListPredictions(self, request: ListPredictionsRequest, context: Context) -> ListPredictionsResponse:
        """Never asked."""
        raise NotImplementedError


@contextlib.asynccontextmanager
async def serving(answering: Answering) -> AsyncIterator[str]:
    """A real server that answers so; its target."""
    server = grpc.aio.server()
    add_PredictionServiceServicer_to_server(answering, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
