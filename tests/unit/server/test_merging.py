"""How reports of one key become one row."""

from __future__ import annotations

from dataclasses import fields

from peakgate.server.store.merging import LARGER, PHASE_FIGURES, SMALLER, UNITED, WITH_THE_PEAK
from peakgate.server.store.records import PeakRow, PhasePeakRow
from peakgate.server.store.tables import PEAK_KEY, PHASE_KEY, peaks, phase_peaks

FIRST_TOLD = ("gpu_name", "uid", "boot_id", "agent_version", "driver_version")


def test_every_column_of_a_peak_has_its_rule() -> None:
    """A new one that is forgotten would stay as it was first told, in silence."""
    ruled = (*PEAK_KEY, "peak_bytes", *LARGER, *SMALLER, *UNITED, *WITH_THE_PEAK, *FIRST_TOLD)
    assert sorted(ruled) == sorted(column.name for column in peaks.columns)
    assert sorted(ruled) == sorted(field.name for field in fields(PeakRow))


def test_every_column_of_a_phase_has_its_rule() -> None:
    """Both figures grow."""
    ruled = (*PHASE_KEY, *PHASE_FIGURES)
    assert sorted(ruled) == sorted(column.name for column in phase_peaks.columns)
    assert sorted(ruled) == sorted(field.name for field in fields(PhasePeakRow))
