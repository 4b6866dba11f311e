"""One training step as a small text chart: memory from left to right in time."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.client.render.units import gb
from peakgate.v1.prediction_pb2 import TimelinePoint

_LEVELS = " ▁▂▃▄▅▆▇█"


def timeline_chart(points: Sequence[TimelinePoint], *, width: int = 72, height: int = 8) -> list[str]:
    """Lines of a chart of `points`, `height` rows and a row that names the phases; empty without points.

    Each column is the highest of the points that fall into it, so that a short peak is never lost.
    """
    if not points:
        return []
    columns = _columns(points, width)
    highest = max(columns) or 1
    rows = [_row(columns, highest, height, row) for row in range(height - 1, -1, -1)]
    rows[0] += f"  {gb(highest)}"
    rows[-1] += "  0 GB at the bottom"
    return [*rows, _phases(points, width)]


def _columns(points: Sequence[TimelinePoint], width: int) -> list[int]:
    return [max(point.allocated_bytes for point in _points_of(points, column, width)) for column in range(width)]


def _points_of(points: Sequence[TimelinePoint], column: int, width: int) -> Sequence[TimelinePoint]:
    """The points that fall into a column, at least one: a short step is stretched, a long one is gathered."""
    first = column * len(points) // width
    return points[first : max(first + 1, (column + 1) * len(points) // width)]


def _row(columns: Sequence[int], highest: int, height: int, row: int) -> str:
    filled = (column / highest * height - row for column in columns)
    return "".join(_LEVELS[round(max(0.0, min(1.0, part)) * 8)] for part in filled)


def _phases(points: Sequence[TimelinePoint], width: int) -> str:
    cells = [" "] * width
    before, end = "", 0
    for column in range(width):
        phase = _points_of(points, column, width)[-1].phase
        if phase != before and column >= end:
            text = f"|{phase}"[: width - column]
            cells[column : column + len(text)] = text
            before, end = phase, column + len(text)
    return "".join(cells).rstrip()
