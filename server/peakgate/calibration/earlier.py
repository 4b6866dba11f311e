"""A state that an earlier version of this program stored, as today's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from peakgate.calibration.versions import Versions

NAMED_VERSIONS = 3
"""The format in which each level held the names of the versions that it met, and not their numbers."""


def with_numbers(state: Mapping[str, object]) -> Mapping[str, object]:
    """A state of format 3 with the versions that its levels met in one table, those of the most levels first.

    What no longer fits into the table is new to the levels when it comes again. Raises TypeError for a state that is none.
    """
    nodes = state["nodes"]
    if not isinstance(nodes, dict):
        raise TypeError("nodes has a wrong type")
    met = Counter(str(name) for *_, names in nodes.values() for name in names)
    versions = Versions()
    numbers = versions.take(name for name, _ in sorted(met.items(), key=lambda pair: (-pair[1], pair[0])))
    numbered = {level: [*values, [numbers[name] for name in names if name in numbers]] for level, (*values, names) in sorted(nodes.items())}
    return {**state, "nodes": numbered, "versions": versions.state()}
