"""What the service makes of ended attempts, and how it shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.integration.service.rows import predicted

from peakgate.v1 import calibration_service_pb2 as calibration_pb
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1 import telemetry_service_pb2 as telemetry_pb
from peakgate.v1.prediction_pb2 import Observation
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]
UUID = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a70"
TOTAL_BYTES = 85_520_809_984


async def report(service: Any, prediction: str, *rows: Mapping[str, object]) -> telemetry_pb.ReportPeaksResponse:
    """Rows of node n1."""
    peaks = []
    for row in rows:
        usual: dict[str, object] = {"node": "n1", "gpu_uuid": UUID, "gpu_total_bytes": TOTAL_BYTES, "job": "7", "prediction": prediction}
        peaks.append(telemetry_pb.PeakSample(**(usual | {"source": "sampled"} | dict(row))))  # type: ignore[arg-type]  # protobuf checks the types
    node = telemetry_pb.NodeInfo(cluster="c", node="n1", boot_id="b")
    answer: telemetry_pb.ReportPeaksResponse = await service.telemetry.ReportPeaks(telemetry_pb.ReportPeaksRequest(node=node, peaks=peaks))
    assert not answer.refused
    return answer


async def end(service: Any, prediction: str, event: str = "finished", **fields: object) -> None:
    """The job's end."""
    request = telemetry_pb.ReportJobEventRequest(cluster="c", job="7", prediction=prediction, event=event, **fields)  # type: ignore[arg-type]  # protobuf checks the types
    await service.telemetry.ReportJobEvent(request)


async def observations(service: Any, prediction: str) -> list[Observation]:
    """What was made of the job."""
    found = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=prediction))
    return list(found.observations)


async def test_an_observation_says_what_it_rests_on(service: Any, a_job: AJob) -> None:
    """Accounting beside samples, the helper's blocks: kind, source, class, node, GPU, ends, in the answer and in the list."""
    before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
    device = before.peak.device_bytes
    process: dict[str, object] = {"pid": 9, "pid_start_ticks": 5}
    helper = {"torch_reserved_bytes": device - 10**9, "torch_allocated_bytes": device - 2 * 10**9, "steps_done": 70}
    rows: list[dict[str, object]] = [{"peak_bytes": device * 0.99, "ended": True}, {"peak_bytes": device * 0.99} | process]
    rows += [{"peak_bytes": float(device), "source": "accounting"} | process, {"peak_bytes": 1.0, "source": "torch"} | process | helper]
    await report(service, before.prediction, *rows)
    await end(service, before.prediction, exit_code=0, signal=0, origin="agent")
    (found,) = await observations(service, before.prediction)
    assert (found.kind, found.source, found.confidence, found.origin, found.learned) == ("exact", "accounting+torch", "A", "agent", True)
    assert (found.node, found.gpu_uuid, found.steps_done, found.observed_bytes) == ("n1", UUID, 70, device)
    assert (found.lower_bytes, found.upper_bytes) == (device - 10**9, device)
    listed = (await service.predictions.ListPredictions(pb.ListPredictionsRequest())).predictions[0]
    assert listed.observation == found
    assert listed.observed_device_bytes == device


@pytest.mark.parametrize("order", [("finished", "oom", "failed"), ("oom", "failed", "finished"), ("failed", "finished", "oom")])
async def test_several_events_of_one_end_give_one_result(order: tuple[str, ...], start_service: Any, a_job: AJob) -> None:
    """The agent sees an end, the scheduler a failure, the helper an out-of-memory: whoever comes first."""
    async with start_service() as service:
        before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
        for event in order:
            await end(service, before.prediction, event)
        card = int(before.peak.device_bytes * 1.1)
        await report(service, before.prediction, {"peak_bytes": card * 0.95, "gpu_total_bytes": card, "ended": True})
        (found,) = await observations(service, before.prediction)
        stored = (await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=before.prediction))).stored
    assert (found.kind, found.reason, found.lower_bytes, found.upper_bytes) == ("lower", "OUT_OF_MEMORY", card, 0)
    assert stored.state == "oom"


async def test_an_event_that_comes_after_learning_is_kept(service: Any, a_job: AJob) -> None:
    """The state follows it; what was learned stays as it was."""
    before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
    await report(service, before.prediction, {"peak_bytes": float(before.peak.device_bytes), "ended": True})
    learned = await observations(service, before.prediction)
    await end(service, before.prediction, "failed", exit_code=1)
    await end(service, before.prediction)
    assert await observations(service, before.prediction) == learned
    found = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=before.prediction))
    assert (found.stored.state, len(learned)) == ("failed", 1)


async def test_a_scheduler_that_tells_the_end_first_waits_for_the_agents_last_rows(service: Any, a_job: AJob) -> None:
    """The epilog of a job is faster than the agent's last batch, which has the peak."""
    before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
    device = before.peak.device_bytes
    await report(service, before.prediction, {"peak_bytes": device * 0.8})
    now = Timestamp()
    now.GetCurrentTime()
    await end(service, before.prediction, origin="slurm", exit_code=0, event_time=now)
    assert await observations(service, before.prediction) == []
    await report(service, before.prediction, {"peak_bytes": float(device), "ended": True})
    (found,) = await observations(service, before.prediction)
    assert (found.kind, found.observed_bytes) == ("exact", device)


async def test_the_end_on_one_node_waits_for_the_other(service: Any, a_job: AJob) -> None:
    """The first node to be done tells the end; the worst GPU is the other's, which grows until its own agent says that it is over."""
    before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
    device = before.peak.device_bytes
    other: dict[str, object] = {"gpu_uuid": UUID.replace("GPU-", "GPU-0")}
    await report(service, before.prediction, {"peak_bytes": device * 0.8, "ended": True}, {**other, "peak_bytes": device * 0.5})
    now = Timestamp()
    now.GetCurrentTime()
    await end(service, before.prediction, origin="agent", event_time=now)
    assert await observations(service, before.prediction) == []
    await report(service, before.prediction, {**other, "peak_bytes": float(device), "ended": True})
    (found,) = await observations(service, before.prediction)
    assert (found.kind, found.observed_bytes, found.gpu_uuid) == ("exact", device, other["gpu_uuid"])


@pytest.mark.parametrize("exit_of_job", [{"exit_code": 137}, {"exit_code": 0, "signal": 9}], ids=["137", "signal 9"])
async def test_an_end_with_an_exit_status_did_not_go_well(exit_of_job: dict[str, Any], service: Any, a_job: AJob) -> None:
    """A kill is no out-of-memory of the GPU: the peak is a lower end."""
    before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
    await report(service, before.prediction, {"peak_bytes": float(before.peak.device_bytes)})
    await end(service, before.prediction, **exit_of_job)
    (found,) = await observations(service, before.prediction)
    stored = (await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=before.prediction))).stored
    assert (found.kind, found.reason, stored.state) == ("lower", "CUT_SHORT", "failed")


@pytest.mark.parametrize(("told", "want_kind"), [({"origin": "slurm", "exit_code": 0}, "exact"), ({}, "lower")], ids=["scheduler", "agent"])
async def test_an_exit_status_of_0_tells_how_a_full_card_ended(told: dict[str, Any], want_kind: str, service: Any, a_job: AJob) -> None:
    """Without it the last allocation may have been the one that failed."""
    before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
    device = before.peak.device_bytes
    row = {"peak_bytes": float(device), "gpu_total_bytes": int(device / 0.975), "flags": ["censored"]}
    await report(service, before.prediction, row)
    await end(service, before.prediction, event_time=Timestamp(seconds=1), **told)
    (found,) = await observations(service, before.prediction)
    assert found.kind == want_kind


async def test_a_capped_job_is_compared_with_its_longest_sequence(service: Any, a_job: AJob) -> None:
    """Half the peak of the cap is no mismatch when the sequences were shorter; without the helper it is a lower end."""
    job = a_job(micro_batch_size=4, framework="huggingface")
    job.batch.sequence_length_is = "cap"
    short = a_job(micro_batch_size=4, framework="huggingface")
    short.batch.sequence_length = 256
    want_device = (await predicted(service, short)).peak.device_bytes
    seen, unseen = await predicted(service, job), await predicted(service, job)
    assert want_device < 0.7 * seen.peak.device_bytes
    process = {"pid": 9, "pid_start_ticks": 5, "peak_bytes": float(want_device)}
    helper = {"source": "torch", "torch_reserved_bytes": want_device - 10**9, "torch_allocated_bytes": want_device - 2 * 10**9}
    rows = ({"peak_bytes": float(want_device)}, process, process | helper | {"steps_done": 9, "longest_sequence": 256})
    await report(service, seen.prediction, *rows)
    await end(service, seen.prediction)
    (found,) = await observations(service, seen.prediction)
    assert (found.kind, found.predicted_bytes, found.longest_sequence, found.learned) == ("exact", want_device, 256, True)
    await report(service, unseen.prediction, {"peak_bytes": float(want_device)})
    await end(service, unseen.prediction)
    (found,) = await observations(service, unseen.prediction)
    assert (found.kind, found.reason, found.predicted_bytes) == ("lower", "LENGTH_UNKNOWN", unseen.peak.device_bytes)


async def test_what_is_kept_out_says_why(service: Any, a_job: AJob) -> None:
    """With the attempt and its GPU, for whoever looks into it."""
    before = await predicted(service, a_job(micro_batch_size=4, framework="huggingface"))
    await report(service, before.prediction, {"peak_bytes": float(before.peak.device_bytes), "ended": True, "flags": ["xid"], "xid": 79})
    (row,) = (await service.calibration.ListQuarantine(calibration_pb.ListQuarantineRequest())).observations
    assert (row.reason, row.observation.kind, row.observation.node) == ("HARDWARE_ERROR", "dropped", "n1")
    assert row.message == row.observation.message != ""


async def test_an_origin_is_a_short_word(service: Any, refusal: Any) -> None:
    """Longer ones are refused with the field."""
    with pytest.raises(grpc.RpcError) as caught:
        await end(service, "predictions/0", origin="x" * 33)
    assert "origin" in refusal(caught.value).fields
