"""What the service counts of real calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.callers import user_agent
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob


@pytest.mark.parametrize(("options", "want_source"), [((), "grpc"), ((user_agent("slurm"),), "slurm"), ((user_agent("fax"),), "grpc")])
async def test_answers_are_counted_by_who_asked(
    service: Any, a_job: Callable[..., TrainingJob], options: tuple[tuple[str, str], ...], want_source: str
) -> None:
    """A hook names itself in the user agent of its channel."""
    async with grpc.aio.insecure_channel(service.target, options=[*options, ("grpc.use_local_subchannel_pool", 1)]) as channel:
        await PredictionServiceStub(channel).Predict(pb.PredictRequest(job=a_job()))
    text = service.metrics.exposition().decode()
    assert f'peakgate_verdicts_total{{source="{want_source}",verdict="ADMIT"}} 1.0' in text
    assert 'peakgate_verdict_grounds_total{ground="fits"} 1.0' in text


async def test_looking_a_prediction_up_is_no_answer_of_predict(service: Any, a_job: Callable[..., TrainingJob]) -> None:
    """GetPrediction computes it again and counts as its own call."""
    answer = await service.predictions.Predict(pb.PredictRequest(job=a_job(attention="eager")))
    await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=answer.prediction))
    text = service.metrics.exposition().decode()
    assert 'peakgate_verdicts_total{source="grpc",verdict="REJECT"} 1.0' in text
    assert 'peakgate_verdict_grounds_total{ground="too_large"} 1.0' in text
    assert 'peakgate_rpcs_total{code="OK",method="PredictionService/GetPrediction"} 1.0' in text
