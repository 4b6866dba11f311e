"""What policies would have done with a history, for people."""

from __future__ import annotations

from rich.console import Console

from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb
from peakgate.v1.calibration_simulation_pb2 import PolicyOutcome, RefusedAttempt, SimulateCalibrationResponse

HEADINGS = ("jobs", "admitted", "OOM", "right rejections", "false rejections", "not known", "unused", "cost")
MOST_SHOWN = 20
"""Refused lines that a person is shown; all of them are in the JSON form."""


def print_simulation(console: Console, answer: SimulateCalibrationResponse) -> None:
    """A line for each policy, the cheapest one marked, and what the figures cannot say."""
    table = plain_table()
    table.add_column("")
    table.add_column("policy", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for each in answer.policies:
        table.add_row(*_cells(each), style="bold" if each.cheapest else None)
    console.print(table)
    console.print()
    console.print(
        f"→ costs least where an out-of-memory costs {answer.oom_cost:g} and a false rejection {answer.rejection_cost:g} "
        f"({answer.attempts} attempts, {answer.ooms} of them out of memory, {answer.unknown} of which it is not known)"
    )
    console.print(
        "not known: admitted and rejected jobs that were stopped below the card; unused: bound less need, in the mean", style="dim"
    )
    for note in answer.notes:
        console.print(f"- {escape(note)}", style="dim")


def print_refused(console: Console, answer: SimulateCalibrationResponse, *, name: str) -> None:
    """The first attempts that could not be used, and how many there were."""
    for each in answer.refused[:MOST_SHOWN]:
        console.print(f"{escape(_place(each, name))}: {escape(each.reason)}: {escape(each.message)}")
    if answer.refused_attempts:
        named = f", of which the first {MOST_SHOWN} are named" if len(answer.refused) > MOST_SHOWN else ""
        console.print(f"{answer.refused_attempts} of {answer.refused_attempts + answer.attempts} attempts were left out{named}")


def _place(refused: RefusedAttempt, name: str) -> str:
    return f"{name}:{refused.line}" if refused.line else refused.attempt


def _cells(each: PolicyOutcome) -> tuple[str, ...]:
    unknown = f"{each.admitted_unknown} + {each.rejected_unknown}" if each.admitted_unknown or each.rejected_unknown else "0"
    counts = (each.jobs, each.admitted, each.admitted_ooms, each.right_rejections, each.false_rejections)
    return ("→" if each.cheapest else "", escape(each.title), *map(str, counts), unknown, gb(each.unused_bytes), f"{each.cost:g}")
