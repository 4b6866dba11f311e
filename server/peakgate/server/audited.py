"""A stored attempt and its prediction -> what an audit looks at. Pure."""

from __future__ import annotations

import zlib

from google.protobuf.message import DecodeError

from peakgate.calibration.observation import need_between
from peakgate.server.answer import unpack
from peakgate.server.calibration_audit import Seen
from peakgate.server.classing import OUT_OF_MEMORY
from peakgate.server.gpu_figures import LARGEST_CACHE_RATIO
from peakgate.server.store.audit_records import AuditRow
from peakgate.server.store.records import HELPER
from peakgate.server.subjects import observation_from

TOLD = f"+{HELPER}"
"""End of the source of a figure for which the caching allocator's statistics told what was allocated."""


def seen_of(row: AuditRow) -> Seen:
    """A stored attempt as the audit looks at it."""
    promised, usable_bytes = _promise(row)
    required_bytes, device_bytes = _compared(row)
    upper_bytes = row.upper_bytes
    return Seen(
        group=row.group,
        is_rejected=row.verdict == "REJECT",
        is_out_of_memory=row.reason == OUT_OF_MEMORY,
        promised=promised,
        required_bytes=row.required_bytes,
        bound_bytes=row.bound_bytes,
        usable_bytes=usable_bytes,
        need_bytes=need_between(row.lower_bytes, upper_bytes, required_bytes=required_bytes, device_bytes=device_bytes),
        lower_bytes=row.lower_bytes,
        upper_bytes=upper_bytes,
        finished_us=row.finished_us,
        kind=row.kind,
        is_told=row.source.endswith(TOLD),
        is_greedy=row.source.endswith(TOLD) and upper_bytes is not None and upper_bytes > LARGEST_CACHE_RATIO * row.lower_bytes,
    )


def _promise(row: AuditRow) -> tuple[float | None, int]:
    """(coverage, usable bytes) of the answer; what it does not state, or an unreadable one, is None and the whole card."""
    try:
        answer = unpack(row.answer)
    except (zlib.error, DecodeError):
        return None, row.total_bytes
    return answer.peak.coverage or None, answer.capacity.usable_bytes or row.total_bytes


def _compared(row: AuditRow) -> tuple[int, int]:
    """(required, device) bytes of the prediction that the attempt was compared with: a job whose length is a cap has another one."""
    if row.body:
        subject = observation_from(row.body).subject
        return subject.required_bytes, subject.device_bytes
    return row.required_bytes, row.predicted_bytes
