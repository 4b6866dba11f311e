"""A stored observation as a message."""

from __future__ import annotations

from peakgate.server.clock import to_timestamp
from peakgate.server.store.records import ObservationRow
from peakgate.v1.prediction_pb2 import Observation


def observation_message(row: ObservationRow) -> Observation:
    """What was made of an attempt."""
    return Observation(
        job=row.job,
        restart=row.restart,
        kind=row.kind,
        source=row.source,
        confidence=row.confidence,
        origin=row.origin,
        node=row.node,
        gpu_uuid=row.gpu_uuid,
        observed_bytes=row.observed_bytes,
        predicted_bytes=row.predicted_bytes,
        lower_bytes=row.lower_bytes,
        upper_bytes=row.upper_bytes or 0,
        steps_done=row.steps_done,
        longest_sequence=row.longest_sequence,
        learned=row.learned,
        reason=row.reason,
        message=row.message,
        finish_time=to_timestamp(row.finished_us),
    )
