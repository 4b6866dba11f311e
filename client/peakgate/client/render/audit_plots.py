"""The plots of an audit, each a figure with a title that says what it shows, what its marks mean, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from statistics import median

from peakgate.client.render import plots
from peakgate.client.render.audit_words import counted, percent, signed_gb
from peakgate.client.render.plots import RIGHT, WIDTH, Axis, axis_of
from peakgate.client.render.units import GB, utc
from peakgate.v1.calibration_report_pb2 import AuditDay, AuditPoint, CalibrationAudit, ReportCalibrationResponse

MOST_BARS = 40
NAME_CHARACTERS = 52
"""Of a group's name in a title; the table has all of it."""
LINE_CHARACTERS, LINE, BAR_FOOT = 60, 15, 19
"""Letters of a line over a bar, the height of a line, and of what is below it."""
CLASSES = 8
"""Rows of the table under the plots of single jobs."""
DAY_SECONDS = 86_400
SAME = 0.0005
"""Distance below which two sizes are shown as the same."""

FEWEST_DRAWN = 20
"""Needs of a week whose interval decides how far down the plot over time goes; that of two jobs reaches nearly to the bottom."""
OUTERMOST = 100
"""One in so many at each end may lie outside of the plot of margins."""
FEW, FEW_RADIUS, RADIUS = 100, 4.0, 2.6
"""Fewer marks than this are drawn larger."""
PREDICTED = "predicted, without a margin (GB)"
BOUND = (plots.dashes([(8, 8)], "bound", 6), "bound that was given")
CLASS_HEADS = ("predicted", "jobs", "median need", "median bound", "above the bound")

Row = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`title` states what is found; `drawing` and `key` are SVG and HTML, the table's cells plain text."""

    title: str
    drawing: str
    key: str
    note: str
    heads: Row
    rows: Sequence[Row]
    table: str
    """What the table holds."""


def figures(report: ReportCalibrationResponse) -> list[Figure]:
    """Those that the report has something for."""
    made = [_over_time(report)] if report.days else []
    if report.points:
        made.append(_needed(report))
    if any(point.kind != "lower" or point.missed for point in report.points):
        made.append(_beyond(report))
    groups = [group for group in report.groups if group.HasField("mean_waste_bytes")]
    if groups:
        made.append(_waste(report.overall, groups))
    return made


def _gb(size: float) -> str:
    return f"{size:g}"


def _needed(report: ReportCalibrationResponse) -> Figure:
    points = report.points
    most = max(max(point.required_bytes, point.need_bytes, point.bound_bytes) for point in points) / GB
    x = axis_of(0, max(point.required_bytes for point in points) / GB, is_x=True, label=PREDICTED, text=_gb)
    y = axis_of(0, most, is_x=False, label="needed (GB)", text=_gb)
    end = min(x.high, y.high)
    marks = [plots.dashes(((x.at(point.required_bytes / GB), y.at(point.bound_bytes / GB)) for point in points), "bound", _half(points))]
    marks += [plots.rule(x.at(0), y.at(0), x.at(end), y.at(end), "same")]
    marks += _marks(points, lambda point: (x.at(point.required_bytes / GB), y.at(point.need_bytes / GB)))
    return Figure(
        title=_needed_title(points),
        drawing=plots.frame(x, y, marks, description="Needed memory of single jobs over the predicted one"),
        key=plots.key([*_keys(points), BOUND, (plots.rule(1, 15, 15, 1, "same"), "needed = predicted")]),
        note=_chosen(report, len(points)),
        heads=CLASS_HEADS,
        rows=_classes(points),
        table="The same by size",
    )


def _needed_title(points: Sequence[AuditPoint]) -> str:
    known = [point.need_bytes / point.required_bytes - 1 for point in points if point.kind != "lower" and point.required_bytes]
    if not known:
        return "No need is known exactly: jobs ran out of memory or were cut short"
    middle = median(known)
    if abs(middle) < SAME:
        return "The median need is as predicted"
    return f"The median need lies {percent(abs(middle))} {'above' if middle > 0 else 'below'} the prediction"


def _beyond(report: ReportCalibrationResponse) -> Figure:
    """The same with the prediction taken off, so that a margin of a few GB can be seen; without what says too little."""
    points = [point for point in report.points if point.kind != "lower" or point.missed]
    margins = [(point.bound_bytes - point.required_bytes) / GB for point in points]
    low, high = _ends(points, margins)
    x = axis_of(0, max(point.required_bytes for point in points) / GB, is_x=True, label=PREDICTED, text=_gb)
    y = axis_of(low, high, is_x=False, label="beyond the prediction (GB)", text=_gb)
    places = [(x.at(point.required_bytes / GB), y.at(margin)) for point, margin in zip(points, margins, strict=True)]
    marks = [plots.dashes(places, "bound", _half(points)), plots.rule(x.start, y.at(0), x.end, y.at(0), "same")]
    marks += _marks(points, lambda point: (x.at(point.required_bytes / GB), y.at(_over(point))))
    misses = sum(point.missed for point in points)
    outside = sum(not y.low <= _over(point) <= y.high for point in points)
    return Figure(
        title=f"{_none_or(misses)} of {counted(len(points), 'need')} passed the bound, which lies {signed_gb(median(margins) * GB)} above "
        "the prediction in the median",
        drawing=plots.frame(x, y, marks, description="How far needs and bounds lie beyond the prediction, of single jobs"),
        key=plots.key([*_keys(points), BOUND, (plots.rule(1, 8, 15, 8, "same"), "prediction")]),
        note=_chosen(report, len(points)) + (f" {outside:,} lie beyond the edge and are drawn at it." if outside else ""),
        heads=CLASS_HEADS,
        rows=_classes(points),
        table="The same by size",
    )


def _none_or(number: int) -> str:
    return f"{number:,}" if number else "None"


def _ends(points: Sequence[AuditPoint], margins: Sequence[float]) -> tuple[float, float]:
    """From where to where all but the outermost few lie, and every need that was missed: one wild row must not flatten the others."""
    cut = len(points) // OUTERMOST
    below = sorted(_over(point) for point in points)[cut]
    above = sorted(margins)[-1 - cut]
    missed = [_over(point) for point in points if point.missed]
    return min(0.0, below, *missed), max(0.0, above, *missed)


def _over(point: AuditPoint) -> float:
    return (point.need_bytes - point.required_bytes) / GB


def _marks(points: Sequence[AuditPoint], place: Callable[[AuditPoint], tuple[float, float]]) -> list[str]:
    """Hits first, so that misses are never hidden."""
    drawn: list[str] = []
    radius = FEW_RADIUS if len(points) < FEW else RADIUS
    for point in sorted(points, key=lambda each: each.missed):
        x, y = place(point)
        if point.kind == "lower":
            drawn.append(plots.triangle(x, y, "miss hollow" if point.missed else "least"))
        else:
            drawn.append(plots.cross(x, y, "miss") if point.missed else plots.dot(x, y, "need", radius))
    return drawn


def _half(points: Sequence[AuditPoint]) -> float:
    """Of a bound's mark."""
    return 7.0 if len(points) < FEW else 3.0


def _keys(points: Iterable[AuditPoint]) -> list[tuple[str, str]]:
    found = {(point.kind == "lower", point.missed) for point in points}
    meanings = (
        ((False, False), plots.dot(8, 8, "need", 4), "need within its bound"),
        ((False, True), plots.cross(8, 8, "miss", 5), "need above its bound"),
        ((True, True), plots.triangle(8, 7, "miss hollow", 6), "out of memory above its bound: needed at least so much"),
        ((True, False), plots.triangle(8, 7, "least", 6), "needed at least so much"),
    )
    return [(mark, text) for kind, mark, text in meanings if kind in found]


def _chosen(report: ReportCalibrationResponse, drawn: int) -> str:
    """Those of which only so much is known that they cannot be drawn are no choice."""
    chosen = f", evenly chosen among {report.points_among:,}" if len(report.points) < report.points_among else ""
    return f"Each mark is a job: {drawn:,}{chosen}."


def _classes(points: Sequence[AuditPoint]) -> list[Row]:
    """Jobs by predicted size, in classes of as many jobs each."""
    by_size = sorted(points, key=lambda point: point.required_bytes)
    size = max(1, -(-len(by_size) // CLASSES))
    rows: list[Row] = []
    for start in range(0, len(by_size), size):
        some = by_size[start : start + size]
        rows.append(
            (
                f"{some[0].required_bytes / GB:.1f} to {some[-1].required_bytes / GB:.1f} GB",
                f"{len(some):,}",
                f"{median(point.need_bytes for point in some) / GB:.1f} GB",
                f"{median(point.bound_bytes for point in some) / GB:.1f} GB",
                f"{sum(point.missed for point in some):,}",
            )
        )
    return rows


def _over_time(report: ReportCalibrationResponse) -> Figure:
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
    y = axis_of(lowest * 100, 100, is_x=False, label="needs within their bound (%)", text=_gb)
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


def _waste(overall: CalibrationAudit, groups: Sequence[CalibrationAudit]) -> Figure:
    shown = sorted(groups[:MOST_BARS], key=lambda group: -group.mean_waste_bytes)
    most, least = max(0.0, *(group.mean_waste_bytes / GB for group in shown)), min(0.0, *(group.mean_waste_bytes / GB for group in shown))
    x = axis_of(least, most, is_x=True, label="bound minus need, mean (GB)", text=_gb)
    x = Axis(low=x.low, high=x.high, start=14, end=float(WIDTH - RIGHT), ticks=x.ticks, label=x.label, text=x.text)
    tops = list(accumulate((_bar_height(group) for group in shown), initial=8))
    y = Axis(low=0, high=1, start=float(tops[-1]), end=8.0, ticks=(), label="", text=_gb)
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
