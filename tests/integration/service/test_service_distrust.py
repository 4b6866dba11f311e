"""Reasons for distrust that the service counts: told to every answer, shown as gauges, gone when they are; on both databases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.integration.service.rows import predicted
from tests.integration.service.telling import a_batch, a_peak

from peakgate.calibration.node import NodeView
from peakgate.calibration.trust import AGENTS_SILENT, CLAMPED_TOO_OFTEN
from peakgate.server.distrust import HOUR_US, MIN_JOBS
from peakgate.server.subjects import subject_from
from peakgate.v1 import telemetry_service_pb2 as telemetry_pb
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]


def gauge(service: Any, name: str) -> float:
    """Its value."""
    lines = service.metrics.exposition().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


async def report(service: Any, prediction: str, node: str, **changes: object) -> None:
    """A row of a node that an agent of its own sends."""
    peak = a_peak(prediction, 4e9, node=node, job=node, **changes)
    batch = a_batch(peak)
    batch.node.CopyFrom(telemetry_pb.NodeInfo(cluster="c", node=node, boot_id="b", agent_version="1", driver_version="550"))
    await service.telemetry.ReportPeaks(batch)


async def test_nodes_that_go_silent_are_told_and_counted(service: Any, a_job: AJob) -> None:
    """Two of six: every bound is a wide one with a warning, until they report again."""
    job = a_job(framework="huggingface", micro_batch_size=4)
    before = await predicted(service, job)
    for number in range(6):
        await report(service, before.prediction, f"n{number}")
    now_us = service.core.watch._clock()
    await service.core.watch.run()
    assert gauge(service, "peakgate_agents_silent_ratio") == 0.0
    service.core.watch._clock = lambda: now_us + 2 * HOUR_US
    for number in range(4):
        await report(service, before.prediction, f"n{number}", ended=True)
    await service.core.watch.run()
    assert gauge(service, "peakgate_agents_silent_ratio") == 2 / 6
    found = [await predicted(service, job) for _ in range(2)]
    assert found[0].peak == found[1].peak
    assert any(AGENTS_SILENT in warning for warning in found[0].warnings)
    assert found[0].peak.bound_bytes > before.peak.bound_bytes
    assert f'peakgate_answers_distrusted_total{{reason="{AGENTS_SILENT}"}} 2.0' in service.metrics.exposition().decode()
    service.core.watch._clock = lambda: now_us + 30 * HOUR_US  # nobody waits for them any more
    await service.core.watch.run()
    assert gauge(service, "peakgate_agents_silent_ratio") == 0.0
    assert not (await predicted(service, job)).warnings


async def test_one_node_whose_agent_was_stopped_for_good_is_no_alarm(service: Any, a_job: AJob) -> None:
    """A laptop."""
    answer = await predicted(service, a_job(framework="huggingface", micro_batch_size=4))
    await report(service, answer.prediction, "laptop")
    now_us = service.core.watch._clock()
    service.core.watch._clock = lambda: now_us + 2 * HOUR_US
    await service.core.watch.run()
    assert service.core.judge.assessor.told == ()


async def test_bounds_at_their_limit_are_told_and_counted(service: Any, a_job: AJob) -> None:
    """Of fifty different jobs all; the same predictions under a calibration that has come back to reason meet no limit."""
    jobs = [a_job(framework="huggingface", micro_batch_size=4) for _ in range(MIN_JOBS)]
    for number, job in enumerate(jobs):
        job.batch.sequence_length = 1024 + 8 * number
        await predicted(service, job)
    await service.core.audit.flush()
    await service.core.watch.run()
    assert gauge(service, "peakgate_calibration_clamped_ratio") == 0.0
    sound = service.core.judge.snapshot
    subject = subject_from(service.core.judge.judge(jobs[0].SerializeToString(deterministic=True)).content.subject)
    away = NodeView(theta=(100.0, 0.0, 0.0), alarmed=False, exact_rows=0)
    service.core.judge.swap(replace(sound, nodes={subject.levels[0]: away}))
    await service.core.watch.run()
    assert gauge(service, "peakgate_calibration_clamped_ratio") == 1.0
    answer = await predicted(service, jobs[0])
    assert any(CLAMPED_TOO_OFTEN in warning for warning in answer.warnings)
    service.core.judge.swap(sound)
    await service.core.watch.run()
    assert not (await predicted(service, jobs[0])).warnings
