"""The page of an audit: well formed, alone in the world, and every plot says what it shows."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from tests.unit.client.audits import BEGIN, DAY, GOLDEN, HOSTILE, a_day, a_point, a_report, a_wide_report, an_audit

from peakgate.client.render.audit_page import audit_page
from peakgate.client.render.audit_plots import figures
from peakgate.client.render.plots import HEIGHT, WIDTH, axis_of
from peakgate.v1.calibration_report_pb2 import ReportCalibrationResponse

GB = 10**9
REPORTS = {
    "nothing": ReportCalibrationResponse(trust="unknown", trust_reasons=["TOO_FEW_NEEDS"]),
    "one": a_report(days=[a_day(0)], points=[a_point()], groups=[an_audit("g")], alarms=[]),
    "three": a_report(days=[a_day(0), a_day(3)], points=[a_point(), a_point(40), a_point(43)]),
    "only out-of-memories": a_report(points=[a_point(80, kind="lower", upper_bytes=0)] * 3, groups=[]),
    "small": a_report(),
    "wide": a_wide_report(),
}
NEVER_CLOSED = {"meta"}


class Balanced(HTMLParser):
    """Fails on a tag that closes nothing; keeps every tag with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more is open."""
        self.seen.append((tag, dict(attrs)))
        if tag not in NEVER_CLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open and closed."""
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """It must be the one that was opened last."""
        assert self.open.pop() == tag


def parsed(page: str) -> Balanced:
    """The page's tags."""
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def drawings(page: str) -> list[ElementTree.Element]:
    """Every drawing, which is XML too."""
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_is_well_formed_and_needs_nothing(name: str) -> None:
    """Every tag is closed where it was opened; nothing is loaded, and nothing is run."""
    page = audit_page(REPORTS[name])
    tags = parsed(page)
    assert {tag for tag, _ in tags.seen}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a", "use", "image"}
    )
    names = {attribute for _, attributes in tags.seen for attribute in attributes}
    assert names.isdisjoint({"src", "href", "srcset", "action", "xlink:href", "style"})
    assert not any(attribute.startswith("on") for attribute in names)
    assert not re.search(r"@import|url\(|https?:|//", page)
    assert drawings(page) or name == "nothing"


@pytest.mark.parametrize("name", REPORTS)
def test_every_mark_lies_within_its_drawing(name: str) -> None:
    """Also with one job, one day, or a row far outside; and no place is not a number."""
    for drawing in drawings(audit_page(REPORTS[name])):
        _, _, width, height = map(float, drawing.attrib["viewBox"].split())
        for mark in drawing.iter():
            for key, limit in (
                ("x", width),
                ("x1", width),
                ("x2", width),
                ("cx", width),
                ("y", height),
                ("y1", height),
                ("y2", height),
                ("cy", height),
            ):
                assert 0 <= float(mark.attrib.get(key, 0)) <= limit
            for place in mark.attrib.get("points", "").split():
                x, y = map(float, place.split(","))
                assert 0 <= x <= width
                assert 0 <= y <= height


def test_every_plot_has_a_title_a_description_and_a_table() -> None:
    """For whoever does not see it."""
    page = audit_page(a_report())
    tags = parsed(page).seen
    count = len(figures(a_report()))
    assert count == 4
    assert sum(tag == "figcaption" for tag, _ in tags) == count
    assert sum(tag == "svg" and attributes.get("role") == "img" and bool(attributes.get("aria-label")) for tag, attributes in tags) == count
    assert sum(tag == "details" for tag, _ in tags) == count
    assert all(figure.rows and all(len(row) == len(figure.heads) for row in figure.rows) for figure in figures(a_report()))


def test_hostile_names_do_nothing() -> None:
    """Names of groups, users and levels are text wherever they stand."""
    page = audit_page(a_wide_report())
    assert "<script" not in page
    assert HOSTILE not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in page


def test_the_axes_have_units() -> None:
    """Sizes in GB, shares in percent."""
    page = audit_page(a_report())
    for label in ("predicted, without a margin (GB)", "needed (GB)", "beyond the prediction (GB)", "needs within their bound (%)"):
        assert label in page
    assert "bound minus need, mean (GB)" in page


def test_titles_state_what_is_found() -> None:
    """The median over the prediction, the needs above their bound, the waste with its largest group."""
    groups = [an_audit("small", mean_waste_bytes=1e9), an_audit("large", mean_waste_bytes=4e9)]
    titles = [figure.title for figure in figures(a_report(groups=groups))]
    assert titles == [
        "Coverage never fell below its promise beyond chance: 96.0 % in the last seven days, 95.0 % promised",
        "The median need lies 5.0 % above the prediction",
        "2 of 3 needs passed the bound, which lies 2.0 GB above the prediction in the median",
        "A bound lies 2.5 GB above the need on average; most in large: 4.0 GB",
    ]


@pytest.mark.parametrize(
    ("days", "want"),
    [
        ([a_day(0), a_day(1)], "Too few needs to tell whether coverage keeps its promise"),
        (
            [a_day(0, needs=90), a_day(9, week_coverage=0.8, week_below_promise=True)],
            "Coverage fell to 80.0 % in the week to 10 Jan, and is still",
        ),
        (
            [a_day(9, needs=90, week_coverage=0.8, week_below_promise=True), a_day(20)],
            "Coverage fell to 80.0 % in the week to 10 Jan, and came",
        ),
    ],
)
def test_the_title_over_time_says_when_it_fell(days: list[object], want: str) -> None:
    """Too few, now, and then."""
    assert figures(a_report(days=days))[0].title.startswith(want)


def test_alarms_are_marked_where_they_were() -> None:
    """Two days after the first of five, of which each day's place is its end: half of the way less half a day."""
    (drawing,) = drawings(figures(a_report())[0].drawing)
    (mark,) = [each for each in drawing.iter() if each.attrib.get("class") == "alarm"]
    x = axis_of(0, 4, is_x=True, label="", text=str)
    assert float(mark.attrib["x1"]) == pytest.approx(x.at(1.5), abs=0.1)
    assert a_report().alarms[0].alarm_time.seconds == BEGIN + 2 * DAY
    title = mark.find("title")
    assert title is not None
    assert title.text == "2026-01-03 00:00 UTC: framework torch/ddp: needs rose"


def test_points_are_drawn_where_they_belong() -> None:
    """A need of 41 GB over a prediction of 40 GB; a miss is a cross, an out-of-memory a triangle, and both lie on top."""
    drawing = figures(a_report(points=[a_point(), a_point(43), a_point(80, kind="lower", missed=True, upper_bytes=0)]))[1].drawing
    (dot,) = re.findall(r'<circle class="need" cx="([\d.]+)" cy="([\d.]+)"', drawing)
    x, y = axis_of(0, 40, is_x=True, label="", text=str), axis_of(0, 80, is_x=False, label="", text=str)
    assert (float(dot[0]), float(dot[1])) == pytest.approx((x.at(40), y.at(41)), abs=0.1)
    assert drawing.index("<circle") < drawing.index('class="miss"') < drawing.index("miss hollow")


@pytest.mark.parametrize(
    ("low", "high", "want"),
    [
        (0, 141, (0, 25, 50, 75, 100, 125, 150)),
        (0, 1.2, (0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2)),
        (-3, 5, (-4, -2, 0, 2, 4, 6)),
        (5, 5, (4.4, 5.6)),
    ],
)
def test_ticks_are_round_and_hold_all_values(low: float, high: float, want: tuple[float, ...]) -> None:
    """Steps of one, two, two and a half or five times a power of ten; a single value has room on both sides."""
    axis = axis_of(low, high, is_x=True, label="", text=str)
    ends = (axis.ticks[0], axis.ticks[-1]) if low == high else axis.ticks
    assert ends == pytest.approx(want)
    assert axis.low <= low <= high <= axis.high


def test_an_axis_draws_what_lies_outside_at_its_edge() -> None:
    """And the y-axis upwards."""
    x, y = axis_of(0, 10, is_x=True, label="", text=str), axis_of(0, 10, is_x=False, label="", text=str)
    assert (x.at(-5), x.at(99)) == (x.at(0), x.at(10))
    assert 0 < y.at(10) < y.at(0) < HEIGHT
    assert 0 < x.at(0) < x.at(10) < WIDTH


def test_a_small_page_is_as_it_was() -> None:
    """Byte for byte."""
    assert audit_page(a_report()) == (GOLDEN / "audit_small.html").read_text(encoding="utf-8")
