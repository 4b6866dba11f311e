"""The margin: what observed peaks say about the next job of the same kind. Pure: no I/O, no protobuf, no clock."""

from peakgate.calibration.calibrator import Calibrator
from peakgate.calibration.observation import Observation, Outcome
from peakgate.calibration.snapshot import Bound, GroupSummary, Snapshot

__all__ = ["Bound", "Calibrator", "GroupSummary", "Observation", "Outcome", "Snapshot"]
