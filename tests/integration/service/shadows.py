"""What the tests of shadows, of history that is told again and of releases share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.integration.service.telling import ended

from peakgate.calibration import Calibrator, in_order
from peakgate.server.margin import History, Margin
from peakgate.server.retell import Teller
from peakgate.server.store.records import CalibrationRow
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]

RATIOS = (1.01, 0.97, 1.04, 1.0, 0.99, 1.02, 0.98)
"""Of the predicted device peak, over and over."""


async def asked(service: Any, a_job: AJob, number: int) -> list[PredictResponse]:
    """So many predictions of one job."""
    request = pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=4), brief=True)
    return [await service.predictions.Predict(request) for _ in range(number)]


async def lived(service: Any, a_job: AJob, seconds: Sequence[int]) -> list[PredictResponse]:
    """Jobs that were predicted and ended at these seconds, in this order."""
    answers = await asked(service, a_job, len(seconds))
    for second, answer in zip(seconds, answers, strict=True):
        await ended(service, answer, second, RATIOS[second % len(RATIOS)])
    return answers


def active(service: Any) -> CalibrationRow:
    """The active version in the store."""
    row: CalibrationRow = service.core.store.active_calibration()
    return row


def calibrator_of(row: CalibrationRow | None) -> object:
    """What a version has learned, as JSON."""
    assert row is not None
    return json.loads(row.body)["calibrator"]


def replayed(service: Any) -> str:
    """The active version made from what was observed alone, from the first row on."""
    row, memory = active(service), service.core.judge.memory
    history = History(json.loads(row.body)["history"])
    margin = Margin(Calibrator(epoch=memory.version), history=history)
    teller = Teller(memory, everything=history is History.RETOLD)
    for observation in in_order(teller.observations(service.core.store.told(row.sequence, after=0))):
        margin.learn(observation)
    return margin.text()
