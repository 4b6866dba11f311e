"""The plots of an audit whose marks are single jobs: needed against predicted, and how far beyond it; each with a table by size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from peakgate.client.render import plots
from peakgate.client.render.audit_figure import Figure, Row, plain_number
from peakgate.client.render.audit_words import counted, percent, signed_gb
from peakgate.client.render.plots import axis_of
from peakgate.client.render.units import GB
from peakgate.v1.calibration_report_pb2 import AuditPoint, ReportCalibrationResponse

CLASSES = 8
"""Rows of the table under the plots of single jobs."""
SAME = 0.0005
"""Distance below which two sizes are shown as the same."""
OUTERMOST = 100
"""One in so many at each end may lie outside of the plot of margins."""
FEW, FEW_RADIUS, RADIUS = 100, 4.0, 2.6
"""Fewer marks than this are drawn larger."""
PREDICTED = "predicted, without a margin (GB)"
BOUND = (plots.dashes([(8, 8)], "bound", 6), "bound that was given")
CLASS_HEADS = ("predicted", "jobs", "median need", "median bound", "above the bound")


def needed(report: ReportCalibrationResponse) -> Figure:
    """What jobs needed over what was predicted, with the bounds that were given."""
    points = report.points
    most = max(max(point.required_bytes, point.need_bytes, point.bound_bytes) for point in points) / GB
    x = axis_of(0, max(point.required_bytes for point in points) / GB, is_x=True, label=PREDICTED, text=plain_number)
    y = axis_of(0, most, is_x=False, label="needed (GB)", text=plain_number)
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


def beyond(report: ReportCalibrationResponse) -> Figure:
    """The same with the prediction taken off, so that a margin of a few GB can be seen; without what says too little."""
    points = [point for point in report.points if point.kind != "lower" or point.missed]
    margins = [(point.bound_bytes - point.required_bytes) / GB for point in points]
    low, high = _ends(points, margins)
    x = axis_of(0, max(point.required_bytes for point in points) / GB, is_x=True, label=PREDICTED, text=plain_number)
    y = axis_of(low, high, is_x=False, label="beyond the prediction (GB)", text=plain_number)
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
