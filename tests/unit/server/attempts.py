"""Peaks and attempts with full defaults, for the tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace

from peakgate.calibration import Subject
from peakgate.server.store.records import Attempt, PeakRow
from peakgate.server.subjects import subject_text

CARD = 80_000
SECOND = 1_000_000

SUBJECT = Subject(group="g", framework="f", card_bytes=CARD, required_bytes=50_000, device_bytes=58_000)
"""A job that was predicted to need 50,000 bytes and to show 58,000."""


def a_peak(**changes: object) -> PeakRow:
    """The whole job on one GPU."""
    row = PeakRow(
        cluster="c",
        node="n",
        gpu_uuid="GPU-0",
        job="1",
        restart=0,
        prediction="predictions/0",
        pid=0,
        pid_start_ticks=0,
        gpu_name="g",
        gpu_total_bytes=CARD,
        peak_bytes=60_000,
        source="sampled",
        torch_allocated_bytes=0,
        torch_reserved_bytes=0,
        first_us=0,
        last_us=5 * SECOND,
        peak_us=0,
        samples=1,
        gaps=0,
        flags=0,
        ended=1,
        uid=0,
        boot_id="b",
        agent_version="1",
        driver_version="1",
    )
    return replace(row, **changes)  # type: ignore[arg-type]  # the names are those of the record


def a_process(pid: int = 9, **changes: object) -> PeakRow:
    """One process of the job."""
    return a_peak(**{"pid": pid, "pid_start_ticks": 1} | changes)


def of_helper(*, allocated: int = 50_000, reserved: int = 58_000, pid: int = 9, steps_done: int = 100, **changes: object) -> PeakRow:
    """What the in-process helper says of its process."""
    figures = {"torch_allocated_bytes": allocated, "torch_reserved_bytes": reserved, "peak_bytes": reserved}
    return a_process(pid, **{"source": "torch", "steps_done": steps_done} | figures | changes)


def an_attempt(*peaks: PeakRow, event: str = "finished", model_version: str = "1") -> Attempt:
    """An attempt of the job above."""
    return Attempt(
        prediction="predictions/0",
        job="1",
        restart=0,
        group="g",
        required_bytes=50_000,
        device_bytes=58_000,
        event=event,
        model_version=model_version,
        finished_us=5 * SECOND,
        peaks=peaks,
        job_digest="digest",
        subject=subject_text(SUBJECT),
    )
