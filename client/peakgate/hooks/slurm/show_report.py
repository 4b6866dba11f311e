"""The report on a gate's verdicts, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb
from peakgate.hooks.slurm.report import LISTED, Judged, counts
from peakgate.v1.names import bare_id

HEADS = ("time", "user", "job", "partition", "bound", "card", "observed", "state", "prediction")


def print_report(console: Console, judged: Sequence[Judged]) -> None:
    """The counts, then the jobs that an operator wants to see, by their worth."""
    console.print(f"{len(judged)} submissions that asked for GPUs")
    for worth, number in counts(judged).items():
        if number or worth in LISTED:
            console.print(f"  {number:>6} {worth}")
    for worth in LISTED:
        found = [each for each in judged if each.worth is worth]
        if found:
            console.print(f"\n  {str(worth).capitalize()}")
            console.print(_table(found))


def _table(judged: Sequence[Judged]) -> Table:
    table = plain_table(*HEADS)
    for each in judged:
        sizes = (each.bound_bytes, each.usable_bytes, each.observed_bytes)
        words = (each.time[:19], each.user, each.job_name, each.partition)
        identity = bare_id(each.prediction)
        table.add_row(*map(escape, words), *(gb(size) if size else "" for size in sizes), each.state, escape(identity))
    return table
