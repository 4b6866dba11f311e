"""PredictionService on the wire."""

# ruff: noqa: ARG002, N802 - gRPC names the methods and their arguments
from __future__ import annotations

import grpc

from peakgate.server.predictor import Predictor
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.callers import GRPC, caller_of
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceServicer

Context = grpc.aio.ServicerContext[object, object]


class PredictionService(PredictionServiceServicer):
    """Hands every call to the predictor; the interceptor turns its errors into statuses."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    async def Predict(self, request: pb.PredictRequest, context: Context) -> PredictResponse:
        """Judges a job and stores the prediction."""
        return await self._predictor.predict(request, caller=_caller(context))

    async def Suggest(self, request: pb.SuggestRequest, context: Context) -> pb.SuggestResponse:
        """Ranks changes that make a job fit."""
        return await self._predictor.suggest(request)

    async def GetPrediction(self, request: pb.GetPredictionRequest, context: Context) -> pb.GetPredictionResponse:
        """A stored prediction."""
        return await self._predictor.get(request)

    async def ListPredictions(self, request: pb.ListPredictionsRequest, context: Context) -> pb.ListPredictionsResponse:
        """Stored predictions, newest first."""
        return await self._predictor.list(request)


def _caller(context: Context) -> str:
    for name, value in context.invocation_metadata() or ():
        if name == "user-agent":
            return caller_of(str(value))
    return GRPC
