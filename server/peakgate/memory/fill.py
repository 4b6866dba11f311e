"""Values that a job leaves out, from the table of defaults, each remembered as an assumption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.memory.defaults import default_of
from peakgate.memory.earlier import earlier_of


@dataclass(slots=True)
class Resolver:
    """Fills fields from the table of defaults and remembers what it filled."""

    framework: str
    assumptions: list[str]
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Stated versions by library."""

    def text(self, stated: str | None, field: str) -> str:
        """The stated word, or the framework's."""
        return self._assumed(field) if stated is None else stated

    def whole(self, stated: int | None, field: str) -> int:
        """The stated number, or the framework's."""
        return int(self._assumed(field)) if stated is None else stated

    def flag(self, stated: bool | None, field: str) -> bool:  # noqa: FBT001 - a value, not a switch
        """The stated flag, or the framework's."""
        return self._assumed(field) == "true" if stated is None else stated

    def _assumed(self, field: str) -> str:
        row = earlier_of(self.framework, field, self.versions) or default_of(self.framework, field)
        self.assumptions.append(f"{field}: {row.value} ({row.source})")
        return row.value
