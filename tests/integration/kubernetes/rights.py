"""Rights on an API server as sets, to be compared."""

from __future__ import annotations

from collections.abc import Iterable

from peakgate.hooks.kubernetes.permissions import Permission

Right = tuple[str, str, str, bool]
"""(group, resource, verb, only by name)."""


def wanted(rows: Iterable[Permission], *options: str) -> set[Right]:
    """What the code says that it asks for with these options."""
    asked = [row for row in rows if not row.option or row.option in options]
    return {(row.group, row.resource, verb, row.is_named) for row in asked for verb in row.verbs}
