"""The margin: what observed peaks say about the next job of the same kind. Pure: no I/O, no protobuf, no clock."""

from peakgate.calibration.calibrator import Calibrator, in_order, replay
from peakgate.calibration.observation import Observation, Outcome
from peakgate.calibration.snapshot import Bound, Snapshot
from peakgate.calibration.subject import Subject
from peakgate.calibration.trial import Rule, Trial

__all__ = ["Bound", "Calibrator", "Observation", "Outcome", "Rule", "Snapshot", "Subject", "Trial", "in_order", "replay"]
