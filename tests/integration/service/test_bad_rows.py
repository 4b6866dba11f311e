"""Bad input and attacks over real gRPC, each with its outcome: the next honest job's bound is what it was, or safely wider."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.integration.service.telling import TOTAL_BYTES, a_batch, a_peak, an_end
from tests.integration.service.test_service_margin import predicted

from peakgate.memory.job import Job
from peakgate.memory.prediction import LedgerLine, Prediction
from peakgate.server.memory import MemoryModel, memory_model
from peakgate.v1 import calibration_service_pb2 as calibration_pb
from peakgate.v1.training_job_pb2 import TrainingJob

pytestmark = pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
"""What becomes of rows is decided before they are stored; that both databases store them alike is other tests' to show."""

AJob = Callable[..., TrainingJob]
GB = 1_000_000_000
MIB_FOR_MB = 1.048576
LATE_US = 100 * 365 * 86_400 * 1_000_000


async def one(service: Any, a_job: AJob, number: int, *, peak_bytes: float, event: str = "", **changes: object) -> None:
    """A job of the same document is predicted, shows a peak, and ends; `event` tells how, else its peaks say that it is over."""
    answer = await predicted(service, a_job)
    peak = a_peak(answer.prediction, peak_bytes, job=str(number), **{"ended": not event, "uid": 1000 + number % 12} | changes)
    await service.telemetry.ReportPeaks(a_batch(peak))
    if event:
        await service.telemetry.ReportJobEvent(an_end(answer.prediction, event, job=str(number)))


async def honest(service: Any, a_job: AJob, count: int, *, start: int = 0, extra_gb: float = 0.0) -> None:
    """Jobs of twelve users that show what was predicted, give or take 0.1 GB, and `extra_gb` more."""
    draw = random.Random(start)
    device_bytes = (await predicted(service, a_job)).peak.device_bytes
    for number in range(start, start + count):
        await one(service, a_job, number, peak_bytes=device_bytes + (extra_gb + draw.gauss(0, 0.1)) * GB)


async def bound_gb(service: Any, a_job: AJob) -> float:
    """Of the next job."""
    return float((await predicted(service, a_job)).peak.bound_bytes / GB)


async def kept_out(service: Any) -> list[tuple[str, str]]:
    """(job, reason) of everything in quarantine, oldest first."""
    listed = await service.calibration.ListQuarantine(calibration_pb.ListQuarantineRequest(page_size=1000))
    return [(row.observation.job, row.reason) for row in reversed(listed.observations)]


@pytest.mark.parametrize(
    ("peak_of", "want_reason"),
    [
        (lambda device: device / 1024, "FAR_BELOW_PREDICTION"),  # KiB that were taken for bytes
        (lambda device: device / 1024**2, "FAR_BELOW_PREDICTION"),  # MiB
        (lambda device: device / 8, "FAR_BELOW_PREDICTION"),  # bits
        (lambda device: TOTAL_BYTES * 0.97, "FAR_ABOVE_PREDICTION"),  # another program's card
        (lambda device: 1.0, "VALUE_INVALID"),
    ],
    ids=["KiB", "MiB", "bits", "whole card", "one byte"],
)
async def test_what_cannot_be_the_job_is_quarantined(service: Any, a_job: AJob, peak_of: Callable[[int], float], want_reason: str) -> None:
    """Poison and confused units: named, never learned, and the bound does not move by a byte."""
    before = await predicted(service, a_job)
    await one(service, a_job, 0, peak_bytes=peak_of(before.peak.device_bytes))
    assert await kept_out(service) == [("0", want_reason)]
    assert (await predicted(service, a_job)).peak == before.peak


@pytest.mark.parametrize(
    ("peak_bytes", "want_reason"),
    [
        (math.nan, "PEAK_INVALID"),
        (math.inf, "PEAK_INVALID"),
        (-math.inf, "PEAK_INVALID"),
        (-1.0, "PEAK_INVALID"),
        (0.0, "PEAK_INVALID"),
        (26e9 * 1024, "PEAK_ABOVE_CARD"),  # bytes that were taken for KiB
        (1e300, "PEAK_INVALID"),
    ],
)
async def test_what_is_no_size_is_refused_at_the_door(service: Any, a_job: AJob, peak_bytes: float, want_reason: str) -> None:
    """The row is answered with its reason, nothing of it is stored, and nothing moves."""
    before = await predicted(service, a_job)
    batch = a_batch(a_peak(before.prediction, peak_bytes, ended=True))
    answer = await service.telemetry.ReportPeaks(batch)
    assert [(row.index, row.reason) for row in answer.refused] == [(0, want_reason)]
    assert await kept_out(service) == []
    after = await predicted(service, a_job)
    assert (after.peak, after.calibration) == (before.peak, before.calibration)


async def test_a_unit_that_looks_like_the_job_moves_the_bound_by_little(service: Any, a_job: AJob) -> None:
    """MB for MiB is 5 %, which may be a job: a tenth of such rows, either way, and the bound moves by less than a GB."""
    await honest(service, a_job, 40)
    before, device = await bound_gb(service, a_job), (await predicted(service, a_job)).peak.device_bytes
    for number in range(40, 44):
        await one(service, a_job, number, peak_bytes=device * (MIB_FOR_MB if number % 2 else 1 / MIB_FOR_MB))
    assert await kept_out(service) == []
    assert await bound_gb(service, a_job) == pytest.approx(before, abs=1.0)


async def test_a_job_that_was_stopped_early_narrows_nothing(service: Any, a_job: AJob) -> None:
    """Censored: what failed, was cancelled or ran out of memory beside another program needs at least what it showed, and no less."""
    await honest(service, a_job, 30)
    before, device = await bound_gb(service, a_job), (await predicted(service, a_job)).peak.device_bytes
    for number, event in enumerate(("failed", "cancelled", "oom") * 4, 30):
        await one(service, a_job, number, peak_bytes=device * 0.4, event=event)
    assert await bound_gb(service, a_job) >= before - 0.05
    answer = await predicted(service, a_job)
    assert answer.peak.bound_bytes >= answer.peak.required_bytes


async def test_a_row_that_comes_again_changes_nothing(service: Any, a_job: AJob) -> None:
    """Duplicated: the same batch and the same end, five times."""
    answer = await predicted(service, a_job)
    for _ in range(5):
        await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, answer.peak.device_bytes * 1.1)))
        await service.telemetry.ReportJobEvent(an_end(answer.prediction))
    assert (await predicted(service, a_job)).calibration.observations == 1


async def test_a_clock_that_runs_ahead_shuts_nobody_out(service: Any, a_job: AJob) -> None:
    """Future-dated: an end in a hundred years counts as of its receipt, and the next job is learned after it."""
    answer = await predicted(service, a_job)
    ahead = Timestamp()
    ahead.FromMicroseconds(answer_time := LATE_US + 1_700_000_000_000_000)
    peak = a_peak(answer.prediction, answer.peak.device_bytes, job="ahead", first_time=ahead, last_time=ahead, peak_time=ahead)
    await service.telemetry.ReportPeaks(a_batch(peak))
    end = an_end(answer.prediction, job="ahead")
    end.event_time.CopyFrom(ahead)
    await service.telemetry.ReportJobEvent(end)
    await one(service, a_job, 1, peak_bytes=answer.peak.device_bytes)
    after = await predicted(service, a_job)
    assert (after.calibration.observations, await kept_out(service)) == (2, [])
    history = service.core.store.past_attempts(since_us=0, after=None, limit=9)
    assert all(row.finished_us < answer_time for row in history)


async def test_who_under_declares_is_quarantined_and_the_others_are_not_bounded_higher(service: Any, a_job: AJob) -> None:
    """One user with a tenth of the jobs, which need 1.4 times what is predicted: after four rows nothing more is learned of them."""
    await honest(service, a_job, 30)
    before, device = await predicted(service, a_job), (await predicted(service, a_job)).peak.device_bytes
    for number in range(30, 100):
        if number % 10 == 5:
            await one(service, a_job, number, peak_bytes=1.4 * device, uid=666)
        else:
            await one(service, a_job, number, peak_bytes=device)
    found = await kept_out(service)
    assert {reason for _, reason in found} == {"USER_QUARANTINED"}
    assert {job for job, _ in found} <= {str(number) for number in range(35, 100, 10)}
    assert len(found) >= 3
    after = await predicted(service, a_job)
    assert after.peak.bound_bytes <= before.peak.bound_bytes + GB
    assert not any("not trusted" in warning for warning in after.warnings)


async def test_a_silent_upgrade_is_learned_and_nobody_is_blamed(service: Any, a_job: AJob) -> None:
    """Everybody's jobs come to need 2 GB more: within thirty rows the bound covers them, and no user is quarantined."""
    await honest(service, a_job, 40)
    before = await predicted(service, a_job)
    await honest(service, a_job, 30, start=40, extra_gb=2.0)
    after = await predicted(service, a_job)
    assert await kept_out(service) == []
    assert after.peak.bound_bytes >= before.peak.required_bytes + 2 * GB
    assert after.peak.bound_bytes <= before.peak.bound_bytes + 4 * GB


def six_gb_too_high(model: MemoryModel) -> MemoryModel:
    """A memory model whose prior of the runtime is 6 GB too high."""

    def predict(job: Job) -> Prediction:
        found, extra = model.predict(job), 6 * GB
        figures = {name: getattr(found, name) + extra for name in ("required_bytes", "device_bytes", "reserved_bytes")}
        return replace(found, ledger=(*found.ledger, LedgerLine(category="runtime", item="too much", bytes=extra)), **figures)

    return replace(model, predict=predict)


async def test_a_wrong_prior_is_unlearned(start_service: Callable[..., AbstractAsyncContextManager[Any]], a_job: AJob) -> None:
    """6 GB too high: nothing is kept out, and after forty jobs the bound is within 3 GB of what they need."""
    async with start_service(memory=six_gb_too_high(memory_model())) as service:
        before = await predicted(service, a_job)
        need_bytes = before.peak.required_bytes - 6 * GB
        for number in range(40):
            await one(service, a_job, number, peak_bytes=before.peak.device_bytes * need_bytes / before.peak.required_bytes)
        after = await predicted(service, a_job)
    assert before.peak.bound_bytes > need_bytes + 6 * GB
    assert need_bytes <= after.peak.bound_bytes <= need_bytes + 3 * GB


def answers_of(service: Any, a_job: AJob) -> Iterable[Any]:
    """Fifty answers to a job that is too large."""
    return (predicted(service, lambda **_: a_job(framework="huggingface", attention="eager")) for _ in range(50))


async def test_without_feedback_nothing_moves(service: Any, a_job: AJob) -> None:
    """All are rejected and nothing reports: the same bound and the same verdict for ever, no tightening and no distrust."""
    answers = [await answer for answer in answers_of(service, a_job)]
    await service.core.learner.learn()
    assert len({answer.peak.bound_bytes for answer in answers}) == 1
    assert len({(answer.verdict, answer.calibration.version, tuple(answer.warnings)) for answer in answers}) == 1
    assert answers[-1].calibration.observations == 0
    assert answers[-1].peak.required_bytes > answers[-1].capacity.usable_bytes
