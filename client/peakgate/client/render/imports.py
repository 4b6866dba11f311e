"""What became of an import, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from peakgate.client.imports.job import Fate, Imported
from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb
from peakgate.v1.document import Plain

SHOWN_FATES = (Fate.LEARNED, Fate.KEPT_OUT, Fate.STORED, Fate.LEFT_OUT)


def print_imports(console: Console, imported: Sequence[Imported]) -> None:
    """A line for each job that a prediction is known of, and how many there were of each fate."""
    shown = [each for each in imported if each.fate in SHOWN_FATES]
    if shown:
        table = plain_table()
        for heading in ("job", "prediction", "peak", "fate", "why"):
            table.add_column(heading, overflow="fold")
        for each in shown:
            peak = max((peak.peak_bytes for peak in each.job.peaks), default=0)
            fate = f"{each.fate} ({each.kind})" if each.kind else str(each.fate)
            table.add_row(escape(each.job.job), escape(each.job.prediction), gb(peak) if peak else "", fate, escape(each.why))
        console.print(table)
        console.print()
    counts = Counter(each.fate for each in imported)
    words = ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate])
    console.print(f"{len(imported)} jobs: {words or 'none of them'}")
    for why, number in Counter(each.why for each in imported if each.fate is Fate.NOT_JOINED).items():
        console.print(f"  {number} not joined: {why}", style="dim")


def import_as_dict(each: Imported) -> dict[str, Plain]:
    """One job of an import as JSON."""
    return {
        "job": each.job.job,
        "restart": each.job.restart,
        "cluster": each.job.cluster,
        "prediction": each.job.prediction,
        "source": each.job.source,
        "event": each.job.event,
        "peak_bytes": max((peak.peak_bytes for peak in each.job.peaks), default=0),
        "fate": str(each.fate),
        "kind": each.kind,
        "why": each.why,
    }
