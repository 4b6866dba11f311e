"""Drawn plots as inline SVG that needs no script: axes with units, marks, lines and bands. Colours are the page's own variables.

A plot is 480 units wide, so that its letters are as large as the text on a phone, and beside another one on a screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from peakgate.client.render.text import escape_html

WIDTH, HEIGHT = 480, 360
LEFT, RIGHT, TOP, FOOT = 58, 22, 30, 52
"""Around the plot: the letters of the y-axis, its unit above, those of the x-axis below."""

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Distances of ticks that a person reads at once, times a power of ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """From the value `low` to `high`, drawn from `start` to `end`, with a tick at each of `ticks`. `text` writes a tick."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    label: str
    text: Callable[[float], str]

    def at(self, value: float) -> float:
        """Where a value is drawn; what lies outside is drawn at the edge."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


def axis_of(low: float, high: float, *, is_x: bool, label: str, text: Callable[[float], str], most_ticks: int = 6) -> Axis:
    """An axis over the values, out to whole ticks; of a single value a little on each side."""
    if high <= low:
        low, high = low - 0.5, high + 0.5
    step = _step((high - low) / most_ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(number * step for number in range(first, last + 1))
    start, end = (float(LEFT), float(WIDTH - RIGHT)) if is_x else (float(HEIGHT - FOOT), float(TOP))
    return Axis(low=ticks[0], high=ticks[-1], start=start, end=end, ticks=ticks, label=label, text=text)


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in STEPS if step * power >= rough * (1 - 1e-9))


def frame(x: Axis, y: Axis, marks: Iterable[str], *, description: str, height: float = HEIGHT) -> str:
    """A plot with its axes behind the marks. `description` is read out in its place."""
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape_html(description)}">{_grid(x, y)}{"".join(marks)}</svg>'


def _grid(x: Axis, y: Axis) -> str:
    parts = [f'<text class="unit" x="2" y="14">{escape_html(y.label)}</text>']
    for tick in y.ticks:
        at = y.at(tick)
        parts.append(f'<line class="grid" x1="{x.start:g}" x2="{x.end:g}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="tick" text-anchor="end" x="{x.start - 6:g}" y="{at + 4.5:.1f}">{escape_html(y.text(tick))}</text>')
    for tick in x.ticks:
        at = x.at(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{y.start:g}" y2="{y.start + 5:g}"/>')
        parts.append(f'<text class="tick" text-anchor="middle" x="{at:.1f}" y="{y.start + 20:g}">{escape_html(x.text(tick))}</text>')
    middle = (x.start + x.end) / 2
    parts.append(f'<text class="unit" text-anchor="middle" x="{middle:g}" y="{y.start + 42:g}">{escape_html(x.label)}</text>')
    return "".join(parts)


def line(points: Sequence[tuple[float, float]], style: str) -> str:
    """A line through drawn places."""
    return f'<polyline class="{style}" points="{_places(points)}"/>' if len(points) > 1 else ""


def band(lower: Sequence[tuple[float, float]], upper: Sequence[tuple[float, float]], style: str) -> str:
    """The area between two lines over the same places."""
    return f'<polygon class="{style}" points="{_places([*lower, *reversed(upper)])}"/>' if len(lower) > 1 else ""


def dot(x: float, y: float, style: str, radius: float = 2.6) -> str:
    """A round mark."""
    return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


def triangle(x: float, y: float, style: str, size: float = 4.5) -> str:
    """A mark that points up: at least so much."""
    return f'<path class="{style}" d="M{x:.1f} {y - size:.1f}l{size:g} {1.7 * size:g}h{-2 * size:g}z"/>'


def cross(x: float, y: float, style: str, size: float = 4.0) -> str:
    """A mark that differs in more than its colour."""
    return (
        f'<path class="{style}" d="M{x - size:.1f} {y - size:.1f}l{2 * size:g} {2 * size:g}m0 {-2 * size:g}l{-2 * size:g} {2 * size:g}"/>'
    )


def dashes(places: Iterable[tuple[float, float]], style: str, half: float = 3.0) -> str:
    """Short level marks, as one shape: there may be thousands."""
    return f'<path class="{style}" d="{"".join(f"M{x - half:.1f} {y:.1f}h{2 * half:g}" for x, y in places)}"/>'


def rule(x1: float, y1: float, x2: float, y2: float, style: str, title: str = "") -> str:
    """A straight line, with what it is told when it is pointed at."""
    told = f"<title>{escape_html(title)}</title>" if title else ""
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}">{told}</line>'


def label(x: float, y: float, text: str, *, style: str = "tick", anchor: str = "start") -> str:
    """Letters."""
    return f'<text class="{style}" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{escape_html(text)}</text>'


def key(marks: Iterable[tuple[str, str]]) -> str:
    """What the marks mean, as text below a plot: (a mark around 8, 8, its meaning)."""
    rows = (f'<li><svg class="mark" viewBox="0 0 16 16" aria-hidden="true">{mark}</svg>{escape_html(text)}</li>' for mark, text in marks)
    return f'<ul class="key">{"".join(rows)}</ul>'


def _places(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
