"""What code that counts sees of metrics; the table of them is metric_table.py, and the exposition makes the series."""

from __future__ import annotations

from functools import cache
from typing import Protocol


class Instrument(Protocol):
    """One time series."""

    def add(self, amount: float = 1.0) -> None:
        """Counts."""

    def set(self, value: float) -> None:
        """Sets a gauge."""

    def observe(self, value: float) -> None:
        """Adds to a histogram."""


class Metrics(Protocol):
    """Gives out time series; keep the series that a hot path uses."""

    def series(self, name: str, **labels: str) -> Instrument:
        """The series of a metric with these labels. Raises KeyError for a name that the table does not have."""


class NullInstrument:
    """Counts nothing."""

    def add(self, amount: float = 1.0) -> None:
        """Nothing."""

    def set(self, value: float) -> None:
        """Nothing."""

    def observe(self, value: float) -> None:
        """Nothing."""


class NullMetrics:
    """The null twin of the embedded service."""

    def series(self, name: str, **labels: str) -> Instrument:  # noqa: ARG002 - a null twin takes what its sibling takes
        """A series that counts nothing."""
        return _nothing()


@cache
def _nothing() -> NullInstrument:
    return NullInstrument()
