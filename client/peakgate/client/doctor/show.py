"""A check-up on the screen or as JSON, and the exit status that it ends with."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.client.doctor.check import Check, State
from peakgate.client.options import Output
from peakgate.client.output import human_console, write_all
from peakgate.client.render.checks import print_checks
from peakgate.v1.plain import Plain


def show(checks: Sequence[Check], output: Output) -> int:
    """Prints the checks; 1 when something is wrong, else 0."""
    rows: list[Plain] = [{"name": each.name, "state": each.state.value, "found": each.found, "remedy": each.remedy} for each in checks]
    if output is Output.table:
        print_checks(human_console(output), checks)
    else:
        write_all(rows, output)
    return 1 if any(each.state is State.bad for each in checks) else 0
