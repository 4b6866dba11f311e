"""The plot of an audit with a bar a group: how far bounds lie above needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from peakgate.client.render import plots
from peakgate.client.render.audit_figure import Figure, Row, plain_number
from peakgate.client.render.audit_words import counted, percent, signed_gb
from peakgate.client.render.plots import RIGHT, WIDTH, Axis, axis_of
from peakgate.client.render.units import GB
from peakgate.v1.calibration_report_pb2 import CalibrationAudit

MOST_BARS = 40
NAME_CHARACTERS = 52
"""Of a group's name in a title; the table has all of it."""
LINE_CHARACTERS, LINE, BAR_FOOT = 60, 15, 19
"""Letters of a line over a bar, the height of a line, and of what is below it."""


def waste(overall: CalibrationAudit, groups: Sequence[CalibrationAudit]) -> Figure:
    """The mean of bound minus need, the widest first."""
    shown = sorted(groups[:MOST_BARS], key=lambda group: -group.mean_waste_bytes)
    most, least = max(0.0, *(group.mean_waste_bytes / GB for group in shown)), min(0.0, *(group.mean_waste_bytes / GB for group in shown))
    x = axis_of(least, most, is_x=True, label="bound minus need, mean (GB)", text=plain_number)
    x = Axis(low=x.low, high=x.high, start=14, end=float(WIDTH - RIGHT), ticks=x.ticks, label=x.label, text=x.text)
    tops = list(accumulate((_bar_height(group) for group in shown), initial=8))
    y = Axis(low=0, high=1, start=float(tops[-1]), end=8.0, ticks=(), label="", text=plain_number)
    marks = [plots.rule(x.at(tick), 4, x.at(tick), tops[-1], "grid") for tick in x.ticks]
    for group, top in zip(shown, tops, strict=False):
        marks += _bar(x, group, top)
    widest = shown[0]
    others = f"; most in {_short(widest.group)}: {signed_gb(widest.mean_waste_bytes)}" if len(shown) > 1 else ""
    more = f"the {MOST_BARS} groups with most needs of {len(groups)}" if len(groups) > MOST_BARS else counted(len(groups), "group")
    return Figure(
        title=f"A bound lies {signed_gb(overall.mean_waste_bytes)} above the need on average{others}",
        drawing=plots.frame(x, y, marks, description="Mean distance of bound and need, by group", height=tops[-1] + 52),
        key="",
        note=f"Shown: {more}.",
        heads=("group", "needs", "bound minus need", "within the bound", "promised"),
        rows=[_group_row(group) for group in groups],
        table="The same by group",
    )


def _bar(x: Axis, group: CalibrationAudit, top: float) -> list[str]:
    left, right = sorted((x.at(0), x.at(group.mean_waste_bytes / GB)))
    names = _lines(f"{group.group}: {signed_gb(group.mean_waste_bytes)}")
    letters = [plots.label(x.start, top + 13 + number * LINE, text, style="bar") for number, text in enumerate(names)]
    below = top + 3 + len(names) * LINE
    return [*letters, f'<rect class="waste" x="{left:.1f}" y="{below:g}" width="{max(1.0, right - left):.1f}" height="9"/>']


def _bar_height(group: CalibrationAudit) -> int:
    return len(_lines(f"{group.group}: {signed_gb(group.mean_waste_bytes)}")) * LINE + BAR_FOOT


def _lines(text: str) -> list[str]:
    """At most two lines; what is longer yet has a gap in its middle."""
    if len(text) > 2 * LINE_CHARACTERS:
        text = f"{text[:LINE_CHARACTERS]}…{text[-LINE_CHARACTERS + 1 :]}"
    return [text[start : start + LINE_CHARACTERS] for start in range(0, len(text), LINE_CHARACTERS)]


def _short(name: str) -> str:
    if len(name) <= NAME_CHARACTERS:
        return name
    half = NAME_CHARACTERS // 2
    return f"{name[:half]}…{name[-half:]}"


def _group_row(group: CalibrationAudit) -> Row:
    return (
        group.group,
        f"{group.needs:,}",
        signed_gb(group.mean_waste_bytes),
        f"{percent(group.coverage)} ({percent(group.coverage_low)} to {percent(group.coverage_high)})" if group.needs else "",
        percent(group.promised_coverage) if group.HasField("promised_coverage") else "",
    )
