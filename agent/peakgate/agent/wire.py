"""The agent's rows as messages of peakgate.v1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peakgate.agent.peaks import JobEvent, PeakRow
from peakgate.v1 import telemetry_service_pb2 as pb
from peakgate.v1.times import duration, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """Who reports. `driver_version` is empty until NVML was opened."""

    node: str
    agent_version: str
    driver_version: str = ""


def batch_message(*, node: NodeIdentity, rows: Iterable[PeakRow], cluster: str, boot_id: str, sequence: int) -> pb.ReportPeaksRequest:
    """A batch; all rows are of one cluster and one boot."""
    return pb.ReportPeaksRequest(
        node=pb.NodeInfo(
            cluster=cluster, node=node.node, boot_id=boot_id, agent_version=node.agent_version, driver_version=node.driver_version
        ),
        sequence=sequence,
        peaks=[_sample(node.node, row) for row in rows],
    )


def event_message(event: JobEvent) -> pb.ReportJobEventRequest:
    """A job's end, as far as this node sees it."""
    return pb.ReportJobEventRequest(
        cluster=event.cluster,
        job=event.job,
        restart=event.restart,
        prediction=event.prediction,
        event=event.event,
        event_time=timestamp(event.time),
        origin="agent",
    )


def _sample(node: str, row: PeakRow) -> pb.PeakSample:
    return pb.PeakSample(
        node=node,
        gpu_uuid=row.key.gpu_uuid,
        gpu_name=row.gpu_name,
        gpu_total_bytes=row.gpu_total_bytes,
        job=row.key.job,
        restart=row.key.restart,
        prediction=row.key.prediction,
        pid=row.key.pid,
        pid_start_ticks=row.key.pid_start_ticks,
        peak_bytes=float(row.peak_bytes),
        source=row.key.source,
        first_time=timestamp(row.first_time),
        last_time=timestamp(row.last_time),
        peak_time=timestamp(row.peak_time),
        samples=row.samples,
        gaps=row.gaps,
        flags=row.flags.words,
        ended=row.ended,
        uid=max(0, row.uid),
        step=row.key.step,
        torch_allocated_bytes=row.allocator.allocated_bytes,
        torch_reserved_bytes=row.allocator.reserved_bytes,
        steps_done=row.allocator.steps_done,
        longest_sequence=row.allocator.longest_sequence,
        alloc_retries=row.allocator.retries,
        ooms=row.allocator.ooms,
        longest_gap=duration(row.longest_gap_seconds),
        xid=row.xid,
        phases=[
            pb.PhasePeak(phase=each.phase, allocated_bytes=each.allocated_bytes, reserved_bytes=each.reserved_bytes)
            for each in row.allocator.phases
        ],
    )
