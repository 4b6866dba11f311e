"""ReportCalibration: real predictions, real reports, over real gRPC, on each database."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.databases import KINDS, Database
from tests.integration.service.rows import an_observation, predicted
from tests.integration.service.telling import GPU, TOTAL_BYTES, a_batch, a_peak, an_end
from tests.unit.server.attempts import SUBJECT

from peakgate.calibration import Observation
from peakgate.server.answer import unpack
from peakgate.server.store import audits
from peakgate.server.store.audit_records import AuditWindow
from peakgate.server.store.engine import open_engine
from peakgate.server.store.records import CalibrationRow
from peakgate.server.store.session import Sessions
from peakgate.server.store.sql import open_store
from peakgate.server.store.tables import calibrations, observations, tries
from peakgate.server.subjects import observation_text
from peakgate.v1.calibration_report_pb2 import ReportCalibrationRequest, ReportCalibrationResponse
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.times import timestamp
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]
PROGRAM = Path(sys.executable).with_name("peakgate")


async def ran(service: Any, answer: PredictResponse, ratio: float, **changes: object) -> None:
    """The job ran to its end, with this part of the predicted device peak."""
    peak = a_peak(answer.prediction, int(answer.peak.device_bytes * ratio), **({"job": answer.prediction[-12:], "ended": True} | changes))
    await service.telemetry.ReportPeaks(a_batch(peak))


async def ran_out(service: Any, answer: PredictResponse) -> None:
    """The job ran out of the whole card."""
    job = answer.prediction[-12:]
    await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, int(TOTAL_BYTES * 0.99), job=job)))
    await service.telemetry.ReportJobEvent(an_end(answer.prediction, "oom", job=job))


async def report(service: Any, **fields: Any) -> ReportCalibrationResponse:
    """The audit."""
    answer: ReportCalibrationResponse = await service.calibration.ReportCalibration(ReportCalibrationRequest(**fields))
    return answer


def insert(database: Database, *rows: tuple[Any, dict[str, object]]) -> None:
    """Rows that another part of the service writes."""
    engine = open_engine(database.url)
    with Sessions(engine).writing() as connection:
        for table, values in rows:
            connection.execute(table.insert().values(**values))
    engine.dispose()


async def test_without_a_job_nothing_can_be_said(service: Any) -> None:
    """No group, no figure, and a word that says why."""
    found = await report(service)
    assert (found.trust, list(found.trust_reasons), found.fewest_needs) == ("unknown", ["TOO_FEW_NEEDS"], 59)
    assert (len(found.groups), len(found.days), len(found.points), found.overall.needs) == (0, 0, 0, 0)
    assert not found.overall.HasField("coverage")
    assert found.until_time.seconds - found.since_time.seconds == 30 * 86_400


async def test_needs_are_held_against_the_bounds_that_were_given(service: Any, a_job: AJob) -> None:
    """Three within their bound, one above; the promise is the one that each answer stated, waste the mean of bound minus need."""
    job = a_job(framework="huggingface", micro_batch_size=4)
    answers = []
    for ratio in (1.0, 0.98, 1.01, 1.3):
        answers.append(await predicted(service, job))
        await ran(service, answers[-1], ratio)
    found = await report(service)
    assert len(found.groups) == 1
    audit = found.groups[0]
    assert audit.group == answers[0].calibration.group
    assert (audit.exact_rows, audit.needs, audit.misses, audit.out_of_memory_misses) == (4, 4, 1, 0)
    assert audit.coverage == pytest.approx(0.75)
    assert (audit.coverage_low, audit.coverage_high) == pytest.approx((0.3006, 0.9544), abs=1e-4)
    assert audit.promised_coverage == pytest.approx(sum(answer.peak.coverage for answer in answers) / 4)
    waste = [point.bound_bytes - point.need_bytes for point in found.points]
    assert audit.mean_waste_bytes == pytest.approx(sum(waste) / 4, abs=1)
    assert [point.missed for point in found.points] == [False, False, False, True]
    assert [point.bound_bytes for point in found.points] == [answer.peak.bound_bytes for answer in answers]
    assert (audit.labels.told_rows, audit.labels.device_only_rows) == (0, 4)
    assert [(day.needs, day.misses, day.week_needs) for day in found.days] == [(4, 1, 4)]
    assert found.overall.coverage == audit.coverage


async def test_an_out_of_memory_above_the_bound_is_a_miss(service: Any, a_job: AJob) -> None:
    """The need is not known, but that it passed its bound is."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=7))
    assert 0.7 * TOTAL_BYTES < answer.peak.bound_bytes < TOTAL_BYTES
    await ran_out(service, answer)
    audit = (await report(service)).overall
    assert (audit.exact_rows, audit.needs, audit.misses, audit.out_of_memory_misses) == (0, 1, 1, 1)
    assert not audit.HasField("mean_waste_bytes")


async def test_rejected_jobs_that_ran_all_the_same(service: Any, a_job: AJob, database: Database) -> None:
    """Of three whose bound passes the card while their requirement does not, one needed less than the card, one ran out of it, and one
    never ran; the first two were granted tries."""
    job = a_job(framework="huggingface")
    answers = [await predicted(service, job) for _ in range(3)]
    assert answers[0].peak.required_bytes < answers[0].capacity.usable_bytes < answers[0].peak.bound_bytes
    await service.core.audit.flush()
    database.run("UPDATE predictions SET verdict = 'REJECT'")
    for answer in answers[:2]:
        granted = {"prediction": answer.prediction, "user_name": "u", "reason": "r", "created_us": time.time_ns() // 1000}
        insert(database, (tries, granted))
    await ran(service, answers[0], answers[0].capacity.usable_bytes / answers[0].peak.device_bytes * 0.97)
    await service.telemetry.ReportJobEvent(an_end(answers[0].prediction, job=answers[0].prediction[-12:]))
    await ran_out(service, answers[1])
    audit = (await report(service)).overall
    found = audit.rejections
    assert (found.predictions, found.attempts, found.false_rejections, found.right_rejections) == (3, 2, 1, 1)
    assert (audit.tries.granted, audit.tries.fitted, audit.tries.oom, audit.tries.unknown) == (2, 1, 1, 0)


async def test_a_rejected_job_that_was_kept_out_says_neither(service: Any, a_job: AJob, database: Database) -> None:
    """It ran, and that is all that is known."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=4))
    await service.core.audit.flush()
    database.run("UPDATE predictions SET verdict = 'REJECT'")
    await ran(service, answer, 0.2)
    found = (await report(service)).groups[0].rejections
    assert (found.predictions, found.attempts, found.false_rejections, found.right_rejections) == (1, 1, 0, 0)


async def test_the_helpers_statistics_are_labels(service: Any, a_job: AJob) -> None:
    """A process whose allocator holds one and a half times what is in use is told, and greedy."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=4))
    peak, job = answer.peak.device_bytes, "7"
    whole = a_peak(answer.prediction, peak, job=job, ended=True, gpu_uuid=GPU + "0")
    process = a_peak(answer.prediction, peak, job=job, ended=True, pid=9, pid_start_ticks=1)
    torch = a_peak(
        answer.prediction,
        peak,
        job=job,
        ended=True,
        pid=9,
        pid_start_ticks=1,
        source="torch",
        torch_allocated_bytes=int(peak / 1.5),
        torch_reserved_bytes=peak,
        steps_done=9,
    )
    await service.telemetry.ReportPeaks(a_batch(whole, process, torch))
    labels = (await report(service)).overall.labels
    assert (labels.told_rows, labels.device_only_rows, labels.greedy_rows) == (1, 0, 1)


async def test_what_was_kept_out_is_counted_by_reason(service: Any, a_job: AJob, database: Database) -> None:
    """Two of a user, who is named only when that is asked for; one that is far off."""
    answers = [await predicted(service, a_job(framework="huggingface", micro_batch_size=4)) for _ in range(3)]
    await ran(service, answers[0], 0.2)
    user = Observation(prediction="p", subject=SUBJECT, lower_bytes=1, upper_bytes=None, finished_at=0, received_at=0)
    body = observation_text(user).replace('"user":""', '"user":"c/1001"')
    for answer in answers[1:]:
        row = an_observation(
            answer.prediction, learned=False, reason="USER_QUARANTINED", kind="dropped", finished_us=time.time_ns() // 1000, body=body
        )
        insert(database, (observations, asdict(row) | {"learned": 0, "sequence": 0, "aside": 0}))
    quiet, told = await report(service), await report(service, users=True)
    assert {each.reason: each.rows for each in quiet.overall.kept_out} == {"USER_QUARANTINED": 2, "FAR_BELOW_PREDICTION": 1}
    assert (quiet.overall.quarantined_users, list(quiet.quarantined_users), list(told.quarantined_users)) == (1, [], ["c/1001"])
    assert (quiet.overall.needs, quiet.groups[0].quarantined_users) == (0, 1)


async def test_alarms_belong_to_their_group_and_their_framework(service: Any, a_job: AJob, database: Database) -> None:
    """Not to a group whose name only begins like theirs."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=4))
    await ran(service, answer, 1.0)
    group, now = answer.calibration.group, time.time_ns() // 1000
    framework = group.split("/", 1)[1].removesuffix("/one node")
    for number, note in enumerate(
        [f"group {group}: needs rose", f"framework {framework}: needs fell", f"group {group}/compiled: needs rose"]
    ):
        row = CalibrationRow(
            sequence=0,
            version=f"1.{number}",
            state="retired",
            created_us=now - 9 + number,
            observations=1,
            groups="[]",
            body="{}",
            kind="alarm",
            note=note,
        )
        insert(database, (calibrations, {name: value for name, value in asdict(row).items() if name != "sequence"}))
    found = await report(service)
    assert [alarm.note.split(":")[1] for alarm in found.alarms] == [" needs rose", " needs fell", " needs rose"]
    assert (found.overall.alarms, found.groups[0].alarms) == (3, 2)


async def test_only_what_ended_in_the_time_and_in_the_groups_counts(service: Any, a_job: AJob) -> None:
    """A name's beginning is compared letter by letter: `%` and `_` are no patterns."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=4))
    await ran(service, answer, 1.0)
    now = time.time()

    async def needs(**fields: object) -> int:
        return (await report(service, **fields)).overall.needs

    assert await needs(since_time=timestamp(now - 3600), until_time=timestamp(now + 3600)) == 1
    assert await needs(since_time=timestamp(now - 7200), until_time=timestamp(now - 3600)) == 0
    assert [await needs(group=name) for name in ("h100", answer.calibration.group, "h%", "H100", "_100", "a100")] == [1, 1, 0, 0, 0, 0]


async def test_a_time_that_ends_before_it_begins_is_refused(service: Any, refusal: Callable[[grpc.RpcError], Any]) -> None:
    """With the field's name."""
    with pytest.raises(grpc.RpcError) as caught:
        await report(service, since_time=timestamp(10), until_time=timestamp(10))
    found = refusal(caught.value)
    assert (found.reason, list(found.fields)) == ("FIELD_INVALID", ["since_time"])


async def test_the_command_says_it_to_people_and_programs(service: Any, a_job: AJob, tmp_path: Path) -> None:
    """A table whose first line is the verdict, JSON with the same figures, and a page."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=4))
    await ran(service, answer, 1.0)
    page = tmp_path / "report.html"
    command = [str(PROGRAM), "calibration", "report", "--server", service.target, "--since", "1d"]

    def run(*more: str) -> str:
        return subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout

    text = await asyncio.to_thread(run, "--html", str(page))
    assert text.startswith("Nobody can tell yet whether the margin can be trusted: 1 of 1 need stayed within its bound")
    assert answer.calibration.group in text
    found = json.loads(await asyncio.to_thread(run, "--output", "json"))
    assert (found["overall"]["needs"], found["groups"][0]["group"]) == (1, answer.calibration.group)
    assert answer.calibration.group in page.read_text()
    page.unlink()
    nobody, left = os.pipe()
    os.close(nobody)
    await asyncio.to_thread(subprocess.run, [*command, "--html", str(page)], stdout=left, check=False)
    os.close(left)
    assert answer.calibration.group in page.read_text()  # also where nobody reads the table to its end


@pytest.mark.parametrize("new_database", [*KINDS, "pgbouncer"], indirect=True)
async def test_rows_are_fetched_some_at_a_time(service: Any, a_job: AJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five needs, two at a time: none is lost and none comes twice, also where the server's connections are dealt out anew."""
    monkeypatch.setattr(audits, "ROWS_AT_ONCE", 2)
    for _ in range(5):
        await ran(service, await predicted(service, a_job(framework="huggingface", micro_batch_size=4)), 1.0)
    found = await report(service)
    assert (found.overall.needs, len(found.points), len({point.finish_time.ToMicroseconds() for point in found.points})) == (5, 5, 5)


async def test_the_store_streams_what_it_shows(service: Any, a_job: AJob, database: Database) -> None:
    """The answer that comes out is the one that was stored, and the body only where the comparison was another."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=4))
    await ran(service, answer, 1.0)
    store = open_store(database.url)
    with store.audit(AuditWindow(since_us=0, until_us=1 << 60)) as source:
        (row,) = source.rows()
        assert source.counts().rows == 1
    store.close()
    assert unpack(row.answer).peak.bound_bytes == row.bound_bytes == answer.peak.bound_bytes
    assert (row.body, row.kind, row.verdict) == ("", "exact", "ADMIT")
