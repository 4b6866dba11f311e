"""The form of a metric: each program has a table of them, which its exposition, the reference page and the linter read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

OTHER = "other"
"""The value of a closed label for what is not on its list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label with all its values, or with what bounds their number where a list of them cannot be written down."""

    name: str
    values: tuple[str, ...] = ()
    bounded_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A row of a table: base units, ratios as quotients, names that end in their unit, and _total for counters."""

    kind: str
    name: str
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of its labels."""
        return tuple(label.name for label in self.labels)

    @property
    def is_closed(self) -> bool:
        """Whether all its series are known beforehand."""
        return all(label.values for label in self.labels)

    def series(self) -> Iterator[dict[str, str]]:
        """Every combination of its labels' values, if they are known beforehand."""
        if self.is_closed:
            for values in product(*(label.values for label in self.labels)):
                yield dict(zip(self.label_names, values, strict=True))

    def listed(self, labels: dict[str, str]) -> dict[str, str]:
        """The labels with `other` for a value that is not on its list. Raises ValueError for a list without one."""
        return {label.name: _listed(label, labels[label.name]) for label in self.labels}


def _listed(label: Label, value: str) -> str:
    if not label.values or value in label.values:
        return value
    if OTHER not in label.values:
        raise ValueError(f"label {label.name} has no value {value!r}")
    return OTHER
