"""How right predictions were, counted as jobs end: the error, whether the bound held, and what became of rejected jobs that ran."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.server.classing import Kind
from peakgate.server.kinds import kind_of
from peakgate.server.metrics import Metrics
from peakgate.server.observe import Observed
from peakgate.server.store.records import Attempt

HELD, PASSED = "held", "passed"
FITTED, OOM, UNKNOWN = "fitted", "oom", "unknown"

KNOWN = (Kind.EXACT, Kind.UPPER)
"""Kinds of observations whose need is known."""

OUT_OF_MEMORY = "OUT_OF_MEMORY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Counts what an ended attempt says of its prediction."""

    metrics: Metrics

    def take(self, attempt: Attempt, observed: Observed) -> None:
        """Takes an attempt that was observed for the first time."""
        gpu, framework = kind_of(attempt.group)
        if observed.kind in KNOWN and attempt.device_bytes:
            error = self.metrics.series("peakgate_observed_over_predicted_ratio", gpu_model=gpu, framework=framework)
            error.observe(observed.observed_bytes / attempt.device_bytes)
        side = side_of(attempt, observed)
        if side:
            self.metrics.series("peakgate_needs_total", gpu_model=gpu, framework=framework, bound=side).add()
        if attempt.verdict == "REJECT":
            self.metrics.series("peakgate_rejected_jobs_total", outcome=end_of(attempt, observed)).add()


def side_of(attempt: Attempt, observed: Observed) -> str:
    """On which side of its bound the need lay; empty where that is not known. Of an out-of-memory it is known that it was more."""
    if observed.observation is None or not attempt.bound_bytes:
        return ""
    need_bytes = observed.observation.need_bytes
    if observed.kind in KNOWN:
        return PASSED if need_bytes > attempt.bound_bytes else HELD
    return PASSED if observed.reason == OUT_OF_MEMORY and need_bytes >= attempt.bound_bytes else ""


def end_of(attempt: Attempt, observed: Observed) -> str:
    """Whether a job fitted the card that it ran on."""
    if attempt.event == "oom" or observed.reason == OUT_OF_MEMORY:
        return OOM
    return FITTED if observed.kind in KNOWN else UNKNOWN
