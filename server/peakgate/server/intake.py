"""Which rows of a batch of peaks are believed. Pure: a row becomes a PeakRow, or a reason and a line for a person."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from peakgate.server.clock import from_timestamp
from peakgate.server.store.records import FLAGS, SOURCES, PeakRow, PhasePeakRow
from peakgate.v1.allocator_report import PHASES
from peakgate.v1.telemetry_service_pb2 import NodeInfo, PeakSample
from peakgate.v1.times import LATEST_SECONDS

UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z/_-]{4,120}")
"""NVML's form of a GPU's or a MIG slice's UUID; older drivers write MIG-GPU-<uuid>/<instance>/<instance>."""

ABOVE_CARD_RATIO = 1.02
"""A peak may pass the card by rounding and by what the driver counts; more is another card's or another unit."""

LARGEST_BYTES = 1 << 50
"""1 PiB: no card; a larger figure is another unit."""

LONGEST_TEXT = 256
"""Characters of the columns (store/tables.py)."""

NUMBERS = ("restart", "pid", "pid_start_ticks", "samples", "gaps", "uid", "steps_done", "longest_sequence", "alloc_retries", "ooms", "xid")

LARGEST_XID = 65_535
"""NVIDIA's list of Xid errors ends below 200; the number travels in 16 bits of the kernel's message."""


REASONS = (
    "NODE_MISMATCH",
    "TEXT_INVALID",
    "SOURCE_UNKNOWN",
    "FLAG_UNKNOWN",
    "PHASE_UNKNOWN",
    "UUID_INVALID",
    "PEAK_INVALID",
    "CARD_INVALID",
    "PEAK_ABOVE_CARD",
    "TORCH_INVALID",
    "NUMBER_INVALID",
    "TIME_INVALID",
)
"""Every word that a refused row is answered with. Part of the interface: words are only added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a row is not stored."""

    reason: str
    message: str


def accept(sample: PeakSample, node: NodeInfo, *, received_us: int) -> PeakRow | Refusal:
    """The row to store, or the first reason against it. Times that are not stated, or lie ahead, are the moment of receipt."""
    for check in CHECKS:
        refusal = check(sample, node)
        if refusal is not None:
            return refusal
    return _row(sample, node, received_us)


def _check_node(sample: PeakSample, node: NodeInfo) -> Refusal | None:
    if sample.node == node.node:
        return None
    return Refusal(reason="NODE_MISMATCH", message=f"the row is of node {sample.node[:64]!r} and was sent by {node.node[:64]!r}")


def _check_text(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    for name in ("gpu_name", "job", "prediction", "source", "step"):
        text: str = getattr(sample, name)
        if len(text) > LONGEST_TEXT or "\x00" in text:
            return Refusal(reason="TEXT_INVALID", message=f"{name} is longer than {LONGEST_TEXT} characters or holds a zero byte")
    return None


def _check_words(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    """An unknown word may say that the figure is not what it seems, so it is not taken for one that is known."""
    if sample.source and sample.source not in SOURCES:
        return Refusal(reason="SOURCE_UNKNOWN", message=f"source is {sample.source[:64]!r}; known are {', '.join(SOURCES)}")
    unknown = next((flag for flag in sample.flags if flag not in FLAGS), None)
    if unknown is not None:
        return Refusal(reason="FLAG_UNKNOWN", message=f"flags holds {unknown[:64]!r}; known are {', '.join(FLAGS)}")
    strange = next((each.phase for each in sample.phases if each.phase not in PHASES), None)
    if strange is not None:
        return Refusal(reason="PHASE_UNKNOWN", message=f"phases holds {strange[:64]!r}; known are {', '.join(PHASES)}")
    return None


def _check_uuid(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    if UUID.fullmatch(sample.gpu_uuid):
        return None
    return Refusal(reason="UUID_INVALID", message=f"{sample.gpu_uuid[:64]!r} is no UUID of a GPU or a MIG slice")


def _check_peak(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    if math.isfinite(sample.peak_bytes) and 1 <= sample.peak_bytes <= LARGEST_BYTES:
        return None
    return Refusal(reason="PEAK_INVALID", message=f"peak_bytes is {sample.peak_bytes}; it must be a positive number of bytes")


def _check_card(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    if not 0 <= sample.gpu_total_bytes <= LARGEST_BYTES:
        return Refusal(reason="CARD_INVALID", message=f"gpu_total_bytes is {sample.gpu_total_bytes}; 0 stands for unknown")
    if sample.gpu_total_bytes and sample.peak_bytes > sample.gpu_total_bytes * ABOVE_CARD_RATIO:
        message = f"peak_bytes {sample.peak_bytes:.0f} is above the card's {sample.gpu_total_bytes} bytes"
        return Refusal(reason="PEAK_ABOVE_CARD", message=message)
    return None


def _check_torch(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    phases = (figure for each in sample.phases for figure in (each.allocated_bytes, each.reserved_bytes))
    if all(0 <= figure <= LARGEST_BYTES for figure in (sample.torch_allocated_bytes, sample.torch_reserved_bytes, *phases)):
        return None
    return Refusal(reason="TORCH_INVALID", message="a figure of torch's allocator is no number of bytes")


def _check_numbers(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    for name in NUMBERS:
        if getattr(sample, name) < 0:
            return Refusal(reason="NUMBER_INVALID", message=f"{name} is {getattr(sample, name)}; it must not be negative")
    if sample.xid > LARGEST_XID:
        return Refusal(reason="NUMBER_INVALID", message=f"xid is {sample.xid}; it must not be above {LARGEST_XID}")
    return None


def _check_times(sample: PeakSample, _node: NodeInfo) -> Refusal | None:
    for name in ("first_time", "last_time", "peak_time"):
        if not 0 <= getattr(sample, name).seconds <= LATEST_SECONDS:
            return Refusal(reason="TIME_INVALID", message=f"{name} lies outside 1970 to 9999")
    if not 0 <= sample.longest_gap.seconds <= LATEST_SECONDS:
        return Refusal(reason="TIME_INVALID", message="longest_gap is negative or longer than all of time")
    return None


CHECKS = (
    _check_node,
    _check_text,
    _check_words,
    _check_uuid,
    _check_peak,
    _check_card,
    _check_torch,
    _check_numbers,
    _check_times,
)
"""In this order; the first one that has something against a row says why."""


def _row(sample: PeakSample, node: NodeInfo, received_us: int) -> PeakRow:
    return PeakRow(
        cluster=node.cluster,
        node=sample.node,
        gpu_uuid=sample.gpu_uuid,
        job=sample.job,
        restart=sample.restart,
        prediction=sample.prediction,
        pid=sample.pid,
        pid_start_ticks=sample.pid_start_ticks,
        gpu_name=sample.gpu_name,
        gpu_total_bytes=sample.gpu_total_bytes,
        peak_bytes=int(sample.peak_bytes),
        source=sample.source,
        step=sample.step,
        torch_allocated_bytes=sample.torch_allocated_bytes,
        torch_reserved_bytes=sample.torch_reserved_bytes,
        first_us=_moment(sample, "first_time", received_us),
        last_us=_moment(sample, "last_time", received_us),
        peak_us=_moment(sample, "peak_time", received_us),
        samples=sample.samples,
        gaps=sample.gaps,
        flags=_flags(sample),
        ended=int(sample.ended),
        uid=sample.uid,
        boot_id=node.boot_id,
        agent_version=node.agent_version,
        driver_version=node.driver_version,
        steps_done=sample.steps_done,
        longest_sequence=sample.longest_sequence,
        alloc_retries=sample.alloc_retries,
        ooms=sample.ooms,
        longest_gap_us=sample.longest_gap.ToMicroseconds(),
        xid=sample.xid,
    )


def phases_of(sample: PeakSample, row: PeakRow) -> list[PhasePeakRow]:
    """The allocator's peaks by phase of a row that was accepted."""
    return [
        PhasePeakRow(
            cluster=row.cluster,
            node=row.node,
            gpu_uuid=row.gpu_uuid,
            job=row.job,
            restart=row.restart,
            prediction=row.prediction,
            pid=row.pid,
            pid_start_ticks=row.pid_start_ticks,
            phase=each.phase,
            allocated_bytes=each.allocated_bytes,
            reserved_bytes=each.reserved_bytes,
        )
        for each in sample.phases
    ]


def _moment(sample: PeakSample, name: Literal["first_time", "last_time", "peak_time"], received_us: int) -> int:
    """A time that is not stated, or that a clock ahead of ours states, is the moment of receipt: nothing was seen after it."""
    return min(from_timestamp(getattr(sample, name)), received_us) if sample.HasField(name) else received_us


def _flags(sample: PeakSample) -> int:
    bits = 0
    for flag in sample.flags:
        bits |= FLAGS[flag]
    return bits
