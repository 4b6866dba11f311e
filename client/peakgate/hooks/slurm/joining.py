"""How a job of Slurm ended, as an event that closes its attempt. Pure.

Slurm does not know of a GPU's memory: a training that runs out of it raises in Python and is FAILED like any bug, and OUT_OF_MEMORY is
the node's RAM. So an out-of-memory of the GPU is inferred: the job failed by itself, with the card nearly full.
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.client.imports.job import ImportedJob
from peakgate.client.imports.joined import prediction_of_comment
from peakgate.client.imports.sacct import SOURCE
from peakgate.client.imports.slurm_words import event_of, exit_of, moment_of
from peakgate.hooks.slurm.attached import read_attached
from peakgate.hooks.slurm.records import fields_of
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse
from peakgate.v1.telemetry_service_pb2 import ReportJobEventRequest
from peakgate.v1.times import timestamp

NEARLY_FULL = 0.97
"""Of the card: the allocator raises when one more request does not fit beside what is in use, so that the last sample is near its end."""

WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
STILL_ENDING = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT"})


def ended_job(record: str, *, cluster: str, restart: int) -> ImportedJob | None:
    """The attempt that ended, of the job in scontrol's record; None while it has not ended. `restart` is what the epilog was told.

    A requeued job keeps its id, and Slurm counts the new attempt before it calls the epilog of the one that was cut off.
    """
    fields = fields_of(record)
    state, restarts = fields.get("JobState", ""), fields.get("Restarts", "0")
    has_ended = fields.get("EndTime", "Unknown") != "Unknown"
    is_later = restarts.isdigit() and int(restarts) > restart
    is_requeued = state in WAITING or is_later or (state == "COMPLETING" and not has_ended)
    if not is_requeued and state in STILL_ENDING:
        return None
    exit_code, signal = (None, None) if is_requeued else exit_of(fields.get("ExitCode", ""))
    comment = fields.get("Comment", "")
    return ImportedJob(
        source=SOURCE,
        cluster=cluster,
        job=fields.get("JobId", ""),
        restart=max(restart - 1, 0) if is_requeued else restart,
        prediction=prediction_of_comment(fields.get("AdminComment", "")) or read_attached({}, comment).prediction,
        event="cancelled" if is_requeued else event_of(state),
        end_time=0.0 if is_requeued else moment_of(fields.get("EndTime", "")),
        exit_code=exit_code,
        signal=signal,
    )


def with_out_of_memory(job: ImportedJob, stored: GetPredictionResponse) -> ImportedJob:
    """The same, called `oom` when it failed by itself with its worst card nearly full. A kill says nothing of why."""
    failed = job.event == "failed" and bool(job.exit_code) and not job.signal
    peak, card = stored.stored.observed_device_bytes, stored.stored.capacity.total_bytes
    return replace(job, event="oom") if failed and card and peak >= NEARLY_FULL * card else job


def event_request(job: ImportedJob) -> ReportJobEventRequest:
    """What the service is told of its end; without a time the moment of receipt counts."""
    return ReportJobEventRequest(
        cluster=job.cluster,
        job=job.job,
        restart=job.restart,
        prediction=job.prediction,
        event=job.event,
        event_time=timestamp(job.end_time) if job.end_time else None,
        exit_code=job.exit_code,
        signal=job.signal,
        origin=SOURCE,
    )
