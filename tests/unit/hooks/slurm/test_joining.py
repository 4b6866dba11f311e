"""How a job of Slurm ended, as an event."""

from __future__ import annotations

import pytest

from peakgate.client.imports.job import ImportedJob
from peakgate.hooks.slurm.ending import ended_in, job_that_ended
from peakgate.hooks.slurm.joining import ended_job, event_request, with_out_of_memory
from peakgate.v1.prediction_pb2 import Capacity
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse, PredictionSummary

RECORD = (
    "JobId=7 JobName=train me UserId=nobody(65534) JobState={state} Reason=None Restarts={restarts} ExitCode={exit} "
    "EndTime=2026-11-30T18:00:00 AdminComment={comment} Comment={own} TresPerNode=gres:gpu:h100:1"
)


def a_record(*, state: str = "COMPLETED", exit: str = "0:0", restarts: int = 0, comment: str = "peakgate=ab12", own: str = "mine") -> str:  # noqa: A002
    """A line of `scontrol show job -o`."""
    return RECORD.format(state=state, exit=exit, restarts=restarts, comment=comment, own=own)


def a_job(**changes: object) -> ImportedJob:
    """A job that failed."""
    values = {"source": "slurm", "cluster": "a", "job": "7", "prediction": "predictions/ab12", "event": "failed", "exit_code": 1}
    return ImportedJob(**values | changes)  # type: ignore[arg-type]  # a builder


def stored(observed_bytes: int, total_bytes: int = 100) -> GetPredictionResponse:
    """A stored prediction whose job was seen with this peak."""
    return GetPredictionResponse(stored=PredictionSummary(observed_device_bytes=observed_bytes, capacity=Capacity(total_bytes=total_bytes)))


@pytest.mark.parametrize(
    ("state", "exit", "want_event", "want_exit"),
    [
        ("COMPLETED", "0:0", "finished", (0, None)),
        ("FAILED", "1:0", "failed", (1, None)),
        ("FAILED", "0:9", "failed", (0, 9)),
        ("CANCELLED", "0:0", "cancelled", (0, None)),
        ("TIMEOUT", "0:0", "cancelled", (0, None)),
        ("OUT_OF_MEMORY", "0:125", "failed", (0, 125)),
        ("NODE_FAIL", "1:0", "failed", (1, None)),
    ],
)
def test_a_state_is_an_event(state: str, exit: str, want_event: str, want_exit: tuple[int, int | None]) -> None:  # noqa: A002
    """OUT_OF_MEMORY is the node's RAM, and never a GPU's."""
    job = ended_job(a_record(state=state, exit=exit), cluster="a", restart=0)
    assert job is not None
    assert (job.event, (job.exit_code, job.signal), job.prediction) == (want_event, want_exit, "predictions/ab12")


def test_a_job_that_is_still_ending_has_none() -> None:
    """Whoever asks from an epilog asks again."""
    assert ended_job(a_record(state="COMPLETING"), cluster="a", restart=0) is None


def test_a_requeued_job_ends_its_attempt_under_the_same_number() -> None:
    """Slurm counts the next attempt before it calls the epilog of the one that was cut off."""
    completing = a_record(state="COMPLETING", restarts=1).replace("EndTime=2026-11-30T18:00:00", "EndTime=Unknown")
    for record in (a_record(state="PENDING", restarts=1), completing, a_record(state="RUNNING", restarts=2)):
        job = ended_job(record, cluster="a", restart=1)
        assert job is not None
        assert (job.job, job.restart, job.event, job.exit_code) == ("7", 0, "cancelled", None)


def test_the_prediction_of_an_interactive_job_stands_in_its_comment() -> None:
    """Where no gate has stamped it."""
    own = "mine; peakgate: id=cd34 digest=" + "0" * 64
    job = ended_job(a_record(comment="(null)", own=own), cluster="a", restart=0)
    assert job is not None
    assert job.prediction == "predictions/cd34"
    unchecked = ended_job(a_record(comment="peakgate=unchecked"), cluster="a", restart=0)
    assert unchecked is not None
    assert unchecked.prediction == ""


@pytest.mark.parametrize(
    ("changes", "peak", "want"),
    [
        ({}, 98, "oom"),
        ({"exit_code": 15}, 98, "oom"),
        ({}, 90, "failed"),
        ({"exit_code": 0, "signal": 9}, 99, "failed"),
        ({"exit_code": 0, "signal": 125}, 99, "failed"),
        ({"event": "cancelled"}, 99, "cancelled"),
        ({"event": "finished", "exit_code": 0}, 99, "finished"),
        ({}, 0, "failed"),
    ],
)
def test_an_out_of_memory_of_the_gpu_is_inferred(changes: dict[str, object], peak: int, want: str) -> None:
    """From a failure of the program itself with the card nearly full; a kill, by whomever, says nothing of why."""
    assert with_out_of_memory(a_job(**changes), stored(peak)).event == want


def test_a_card_of_unknown_size_is_never_full() -> None:
    """Nothing is inferred there."""
    assert with_out_of_memory(a_job(), stored(98, total_bytes=0)).event == "failed"


def test_the_service_is_told_who_says_so() -> None:
    """With the attempt's number."""
    request = event_request(a_job(restart=3, end_time=5.0))
    assert (request.origin, request.restart, request.exit_code, request.event_time.seconds) == ("slurm", 3, 1, 5)
    assert not event_request(a_job()).HasField("event_time")


def test_an_epilog_waits_until_its_job_has_ended() -> None:
    """The job is COMPLETING while its epilog runs."""
    records = iter([a_record(state="COMPLETING"), a_record(state="COMPLETING"), a_record(state="FAILED", exit="1:0")])
    pauses: list[float] = []
    environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_RESTART_COUNT": "0", "SLURM_CLUSTER_NAME": "a"}
    job = job_that_ended(environment, look=lambda _: next(records), pause=pauses.append)
    assert job is not None
    assert (job.event, len(pauses)) == ("failed", 2)
    assert job_that_ended(environment, look=lambda _: a_record(state="COMPLETING"), pause=pauses.append) is None


def test_accounting_without_figures_still_says_how_jobs_ended() -> None:
    """The peaks of such a site are an agent's."""
    text = (
        "JobID|JobIDRaw|Cluster|State|Start|End|NTasks|AllocTRES|TRESUsageInMax|TRESUsageInMaxNode|ExitCode|AdminComment\n"
        "7|7|a|FAILED|100|200||billing=1,gres/gpu=1,node=1|||1:0|peakgate=ab12\n"
        "7.batch|7.batch|a|FAILED|100|200|1|gres/gpu=1,node=1|||1:0|\n"
        "8|8|a|RUNNING|100|Unknown||gres/gpu=1,node=1|||0:0|peakgate=cd34\n"
    )
    (job,) = ended_in(text, where="sacct", mapping={})
    assert (job.job, job.event, job.prediction, job.exit_code) == ("7", "failed", "predictions/ab12", 1)
