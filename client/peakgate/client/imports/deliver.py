"""Imported jobs through the same door as an agent's rows: each figure passes the same checks, each job the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from peakgate.client.connect import Client
from peakgate.client.errors import ServiceError
from peakgate.client.imports.job import Fate, Imported, ImportedJob
from peakgate.v1.prediction_pb2 import Observation
from peakgate.v1.telemetry_service_pb2 import NodeInfo, PeakSample, ReportJobEventRequest, ReportPeaksRequest
from peakgate.v1.times import timestamp

NOT_KNOWN = "no stored prediction has this name"
NOT_NAMED = "nothing names its prediction"


def deliver(client: Client, jobs: Iterable[ImportedJob]) -> Iterator[Imported]:
    """Reports each job and says what became of it. A job that was observed before is left out, so that a repeat changes nothing.

    Raises ServiceError when the service cannot be reached; what was reported until then is kept.
    """
    for job in jobs:
        if not job.prediction:
            yield Imported(job=job, fate=Fate.NOT_JOINED, why=NOT_NAMED)
        elif job.problem:
            yield Imported(job=job, fate=Fate.LEFT_OUT, why=job.problem)
        else:
            yield _delivered(client, job)


def _delivered(client: Client, job: ImportedJob) -> Imported:
    try:
        known = client.get_prediction(job.prediction).observations
    except ServiceError as error:
        if error.code != "NOT_FOUND":
            raise
        return Imported(job=job, fate=Fate.NOT_JOINED, why=NOT_KNOWN)
    before = _of_attempt(job, known)
    if before is not None:
        return Imported(job=job, fate=Fate.LEFT_OUT, kind=before.kind, why=f"was observed before ({before.origin or 'without a peak'})")
    refused = _report(client, job)
    if refused:
        return Imported(job=job, fate=Fate.LEFT_OUT, why=f"refused: {'; '.join(refused)}")
    client.report_job_event(_event(job))
    return _outcome(job, _of_attempt(job, client.get_prediction(job.prediction).observations))


def _of_attempt(job: ImportedJob, observations: Iterable[Observation]) -> Observation | None:
    """Of this attempt; a pod has another name with an agent, so for it any of the prediction's counts."""
    of_pod = "/" in job.job
    return next((each for each in observations if of_pod or (each.job, each.restart) == (job.job, job.restart)), None)


def _outcome(job: ImportedJob, observation: Observation | None) -> Imported:
    if observation is None:
        return Imported(job=job, fate=Fate.STORED, why="the service has not made an observation of it yet")
    fate = Fate.LEARNED if observation.learned else Fate.KEPT_OUT
    why = f"{observation.reason}: {observation.message}" if observation.reason else ""
    return Imported(job=job, fate=fate, kind=observation.kind, why=why)


def _report(client: Client, job: ImportedJob) -> list[str]:
    """Reports the peaks, node by node, without an end: the event says it. Returns why rows were refused."""
    refused = []
    for node in sorted({peak.node for peak in job.peaks}):
        answer = client.report_peaks(_batch(replace(job, peaks=tuple(peak for peak in job.peaks if peak.node == node)), node))
        refused += [f"{row.reason} {row.message}" for row in answer.refused]
    return refused


def _batch(job: ImportedJob, node: str) -> ReportPeaksRequest:
    samples = [
        PeakSample(
            node=node,
            gpu_uuid=peak.gpu_uuid,
            gpu_name=peak.gpu_name,
            job=job.job,
            restart=job.restart,
            prediction=job.prediction,
            peak_bytes=float(peak.peak_bytes),
            source=job.source,
            first_time=timestamp(peak.first_time),
            last_time=timestamp(peak.last_time),
            peak_time=timestamp(peak.peak_time),
            samples=peak.samples,
            flags=peak.flags,
        )
        for peak in job.peaks
    ]
    return ReportPeaksRequest(node=NodeInfo(cluster=job.cluster, node=node), peaks=samples)


def _event(job: ImportedJob) -> ReportJobEventRequest:
    return ReportJobEventRequest(
        cluster=job.cluster,
        job=job.job,
        restart=job.restart,
        prediction=job.prediction,
        event=job.event,
        event_time=timestamp(job.end_time),
        exit_code=job.exit_code,
        signal=job.signal,
        origin=job.source,
    )
