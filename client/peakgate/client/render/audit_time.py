"""The plot of an audit over time: which share of needs stayed within their bound, beside what was promised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from peakgate.client.render import plots
from peakgate.client.render.audit_figure import Figure, Row, plain_number
from peakgate.client.render.audit_words import percent
from peakgate.client.render.plots import Axis, axis_of
from peakgate.client.render.units import utc
from peakgate.v1.calibration_report_pb2 import AuditDay, ReportCalibrationResponse

DAY_SECONDS = 86_400
FEWEST_DRAWN = 20
"""Needs of a week whose interval decides how far down the plot over time goes; that of two jobs reaches nearly to the bottom."""


def over_time(report: ReportCalibrationResponse) -> Figure:
    """A point for each day on which an attempt ended, with its interval, and the drift alarms."""
    days = report.days
    first, last = days[0].day_time.seconds, days[-1].day_time.seconds
    certain = [day for day in days if day.week_needs >= FEWEST_DRAWN] or days
    lowest = min(*(day.week_coverage_low for day in certain), *(min(day.week_coverage, _promised(day)) for day in days))
    count = (last - first) // DAY_SECONDS
    x = axis_of(
        0 if count else -1,
        max(1, count),
        is_x=True,
        label="day, UTC: the seven days that end with it",
        text=lambda tick: _date(first + tick * DAY_SECONDS),
    )
    y = axis_of(lowest * 100, 100, is_x=False, label="needs within their bound (%)", text=plain_number)
    places = [x.at((day.day_time.seconds - first) / DAY_SECONDS) for day in days]

    def line(values: Iterable[float]) -> list[tuple[float, float]]:
        return [(place, y.at(value * 100)) for place, value in zip(places, values, strict=True)]

    found = line(day.week_coverage for day in days)
    marks = [plots.band(line(day.week_coverage_low for day in days), line(day.week_coverage_high for day in days), "band")]
    marks += _alarm_marks(report, x, y, first)
    if not count:  # a single day has no line: its interval as a rule, its promise as a mark
        (place,), (low,), (high,) = places, line([days[0].week_coverage_low]), line([days[0].week_coverage_high])
        marks += [plots.rule(place, low[1], place, high[1], "found"), plots.dashes(line([_promised(days[0])]), "promised", 14)]
    marks += [plots.line(line(_promised(day) for day in days), "promised"), plots.line(found, "found")]
    marks += [plots.dot(*place, "need", 3) for place in found]
    keys = [
        (plots.rule(1, 8, 15, 8, "found") + plots.dot(8, 8, "need", 3), "found"),
        ('<rect class="band" width="16" height="16"/>', f"its {report.confidence * 100:g} % interval"),
        (plots.rule(1, 8, 15, 8, "promised"), "promised"),
        *([(plots.rule(8, 0, 8, 16, "alarm"), "drift alarm")] if report.alarms else []),
    ]
    return Figure(
        title=_time_title(days, fewest_needs=report.fewest_needs),
        drawing=plots.frame(x, y, marks, description="Share of needs within their bound over time, beside the promised one"),
        key=plots.key(keys),
        note="Each point is a day on which an attempt ended.",
        heads=("day", "needs", "above the bound", "found in seven days", "interval", "promised"),
        rows=[_day_row(day) for day in days],
        table="The same by day",
    )


def _promised(day: AuditDay) -> float:
    return day.week_promised_coverage if day.HasField("week_promised_coverage") else 1.0


def _alarm_marks(report: ReportCalibrationResponse, x: Axis, y: Axis, first: int) -> list[str]:
    marks = []
    for alarm in report.alarms:
        place = x.at((alarm.alarm_time.seconds - first) / DAY_SECONDS - 0.5)
        when = f"{utc(alarm.alarm_time)}: {alarm.note or 'a level moved'}"
        marks.append(plots.rule(place, y.start, place, y.end, "alarm", when))
    return marks


def _date(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%b}" if moment.hour == 0 else ""


def _time_title(days: Sequence[AuditDay], *, fewest_needs: int) -> str:
    now = days[-1]
    below = [day for day in days if day.week_below_promise]
    state = f"{percent(now.week_coverage)} in the last seven days, {percent(_promised(now))} promised"
    if not below and sum(day.needs for day in days) < fewest_needs:
        return f"Too few needs to tell whether coverage keeps its promise: {state}"
    if not below:
        return f"Coverage never fell below its promise beyond chance: {state}"
    worst = min(below, key=lambda day: day.week_coverage)
    text = f"Coverage fell to {percent(worst.week_coverage)} in the week to {_date(worst.day_time.seconds)}"
    return f"{text}, and is still below its promise: {state}" if now in below else f"{text}, and came back: {state}"


def _day_row(day: AuditDay) -> Row:
    return (
        f"{day.day_time.ToDatetime():%Y-%m-%d}",
        f"{day.needs:,}",
        f"{day.misses:,}",
        percent(day.week_coverage),
        f"{percent(day.week_coverage_low)} to {percent(day.week_coverage_high)}",
        percent(_promised(day)),
    )
