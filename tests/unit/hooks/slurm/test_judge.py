"""Who judges a submission: the service, or this process when that is not there for the call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from peakgate.client.errors import AWAY, PeakgateError
from peakgate.client.source import Source
from peakgate.hooks.slurm.judge import PREDICTED_HERE, judge
from peakgate.hooks.slurm.submit_settings import SubmitSettings
from peakgate.v1.document import parse_job
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict

OF_THE_JOB = sorted({each.name for each in grpc.StatusCode} - AWAY - {"OK"})


@dataclass
class Answering:
    """A client that admits everything, or fails with a code."""

    code: str = ""

    def predict(self, *_: object, **__: object) -> PredictResponse:
        """Once."""
        if self.code:
            raise PeakgateError("not now", code=self.code, reason="R")
        return PredictResponse(verdict=Verdict.VERDICT_ADMIT)


def judged_when_the_service_says(code: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why the answer is not the service's."""

    @contextmanager
    def client(code: str = "") -> Iterator[Any]:
        yield Answering(code)

    monkeypatch.setattr("peakgate.client.connect.connect", lambda *_, **__: client(code))
    monkeypatch.setattr("peakgate.client.connect.open_embedded_client", client)
    job = parse_job({"model": {"preset": "gpt2"}})
    return judge(Source(label="job", job=job), SubmitSettings(server="there:1")).unserved


@pytest.mark.parametrize("code", sorted(AWAY))
def test_a_service_that_is_away_is_done_without(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one with a fault of its own: that says nothing about the job, and holds nobody's submission up."""
    assert judged_when_the_service_says(code, monkeypatch) == PREDICTED_HERE


@pytest.mark.parametrize("code", OF_THE_JOB)
def test_what_the_service_says_of_the_job_holds(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and another one would say the same."""
    with pytest.raises(PeakgateError, match="not now"):
        judged_when_the_service_says(code, monkeypatch)
