"""What agents and schedulers tell the service of a job, with full defaults."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from peakgate.v1 import telemetry_service_pb2 as telemetry_pb
from peakgate.v1.prediction_pb2 import PredictResponse

GPU = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a7"
TOTAL_BYTES = 85_520_809_984


def a_peak(prediction: str, peak_bytes: float, **changes: object) -> telemetry_pb.PeakSample:
    """The whole job on the first GPU of node n1."""
    values: dict[str, object] = {
        "node": "n1",
        "gpu_uuid": GPU + "0",
        "gpu_total_bytes": TOTAL_BYTES,
        "job": "7",
        "prediction": prediction,
        "peak_bytes": peak_bytes,
        "source": "sampled",
    }
    return telemetry_pb.PeakSample(**(values | changes))  # type: ignore[arg-type]  # protobuf checks the types


def a_batch(*peaks: telemetry_pb.PeakSample, sequence: int = 1) -> telemetry_pb.ReportPeaksRequest:
    """A batch of node n1."""
    node = telemetry_pb.NodeInfo(cluster="c", node="n1", boot_id="b", agent_version="1", driver_version="550")
    return telemetry_pb.ReportPeaksRequest(node=node, sequence=sequence, peaks=peaks)


def an_end(prediction: str, event: str = "finished", job: str = "7") -> telemetry_pb.ReportJobEventRequest:
    """The job's end."""
    return telemetry_pb.ReportJobEventRequest(cluster="c", job=job, prediction=prediction, event=event)


async def ended(service: Any, prediction: PredictResponse, second: int, ratio: float) -> None:
    """The job of a prediction ended at a second with this peak."""
    moment = Timestamp(seconds=second)
    peak = a_peak(prediction.prediction, int(prediction.peak.device_bytes * ratio), job=str(second), last_time=moment, first_time=moment)
    await service.telemetry.ReportPeaks(a_batch(peak))
    request = an_end(prediction.prediction, job=str(second))
    request.event_time.CopyFrom(moment)
    await service.telemetry.ReportJobEvent(request)
