"""An audit of the margin as one HTML page that loads nothing and needs no script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from peakgate.client.render import audit_words as words
from peakgate.client.render.audit_figure import Figure
from peakgate.client.render.audit_plots import figures
from peakgate.client.render.page import STYLE
from peakgate.client.render.text import escape_html as escape
from peakgate.client.render.units import utc
from peakgate.v1.calibration_report_pb2 import CalibrationAudit, ReportCalibrationResponse

LONGEST_FIGURE = 24
"""Characters of a cell that stays on one line: two shares and a word."""

_STYLE = f"""{STYLE}
:root {{ --miss: #c2410c; --promise: #6b21a8; --alarm: #b45309; --bound: #0f766e; --good: #17803d; --bad: #c4281c; --open: #a15c00; }}
@media (prefers-color-scheme: dark) {{ :root {{ --miss: #ff8f5e; --promise: #c9a2ff; --alarm: #fbbf24; --bound: #4fd1b8; }} }}
@media (prefers-color-scheme: dark) {{ :root {{ --good: #4ade80; --bad: #ff7b72; --open: #f0b429; }} }}
body {{ max-width: 66rem; }} .trusted {{ color: var(--good); }} .distrusted {{ color: var(--bad); }} .unknown {{ color: var(--open); }}
.plots > div {{ min-width: 0; }} .plots {{ display: grid; grid-template-columns: 1fr 1fr; gap: 0 2.5rem; align-items: start; }}
@media (max-width: 800px) {{ .plots {{ display: flex; flex-direction: column; align-items: stretch; }} }}
@media (max-width: 800px) {{ .plots > div {{ display: contents; }} .after {{ order: 1; }} }}
figure {{ margin: 0 0 2.2rem; min-width: 0; max-width: 560px; }} figcaption {{ font-weight: 600; margin-bottom: .6rem; }}
figure p {{ margin: .3rem 0; }} .scroll {{ overflow-x: auto; }} th {{ text-align: left; padding: .3rem .6rem .3rem 0; font-weight: 600; }}
td, th {{ font-size: .9rem; }} td {{ white-space: nowrap; }}
td.name {{ overflow-wrap: anywhere; min-width: 8rem; white-space: normal; }}
td.name:first-child {{ min-width: 14rem; }}
details summary {{ cursor: pointer; color: var(--soft); }}
svg text {{ paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }}
svg text.tick {{ fill: var(--soft); font-size: 13px; }} svg text.unit {{ fill: var(--ink); font-size: 13px; }}
@media (max-width: 500px) {{ svg text.tick, svg text.unit {{ font-size: 15px; }} }}
svg text.bar {{ fill: var(--soft); font-size: 13px; }}
svg path, svg polygon {{ fill: none; opacity: 1; }} svg .grid {{ stroke: var(--line); stroke-width: 1; }}
svg .same {{ stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 5 4; }}
svg .need {{ fill: var(--bar); fill-opacity: .55; }} svg .miss {{ stroke: var(--miss); stroke-width: 2; }}
svg .least {{ stroke: var(--soft); stroke-width: 1.3; }} svg .bound {{ stroke: var(--bound); stroke-width: 1.4; opacity: .5; }}
svg .found {{ stroke: var(--bar); stroke-width: 2; fill: none; }} svg .band {{ fill: var(--bar); opacity: .2; stroke: none; }}
svg .promised {{ stroke: var(--promise); stroke-width: 2; stroke-dasharray: 7 4; fill: none; }}
svg .alarm {{ stroke: var(--alarm); stroke-width: 1.6; stroke-dasharray: 2 3; }} svg .waste {{ fill: var(--bar); }}
ul.key {{ list-style: none; padding: 0; margin: .2rem 0; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .85rem; }}
ul.key li {{ display: flex; align-items: center; gap: .4rem; }} svg.mark {{ width: 16px; height: 16px; flex: none; }}
"""


def audit_page(report: ReportCalibrationResponse) -> str:
    """The page as text."""
    title = words.headline(report)
    style = report.trust if report.trust in ("trusted", "distrusted", "unknown") else "unknown"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f'<h1 class="{style}">{escape(title)}.</h1>',
            _why(report),
            _window(report),
            _columns(report),
            _section("Groups", _groups(report.groups)),
            "</body></html>",
        ]
    )


def _columns(report: ReportCalibrationResponse) -> str:
    """Two beside each other where there is room: plots of time and of all jobs, and the longer ones with a bar a group."""
    made = [_figure(figure) for figure in figures(report)]
    after = _section("Over all groups", _list(words.overall_findings(report))) + _section("Drift alarms", _alarms(report))
    left = [*made[:2], f'<div class="after">{after}</div>' if after else ""]
    return f'<div class="plots"><div>{"".join(left)}</div><div>{"".join(made[2:])}</div></div>'


def _why(report: ReportCalibrationResponse) -> str:
    items = [
        f"<li>{escape(why[:1].upper() + why[1:])}. {f'<b>To do:</b> {_commands(advice)}.' if advice else ''}</li>"
        for why, advice in words.reasons(report)
    ]
    if report.trust == "trusted" and not items:
        items = ["<li>There is nothing to do.</li>"]
    below = words.below_finding(report.groups)
    items += [f"<li>{escape(below)}.</li>"] if below else []
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _commands(advice: str) -> str:
    """Text whose commands stand in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(advice))


def _window(report: ReportCalibrationResponse) -> str:
    since, until = utc(report.since_time), utc(report.until_time)
    return f'<p class="soft">Attempts that ended from {since} to {until}; calibration {escape(report.version or "none")}.</p>'


def _figure(figure: Figure) -> str:
    return (
        f"<figure><figcaption>{escape(figure.title)}</figcaption>{figure.drawing}{figure.key}"
        f'<p class="soft">{escape(figure.note)}</p>'
        f"<details><summary>{escape(figure.table)}, as a table</summary>{_table(figure.heads, figure.rows)}</details></figure>"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str) -> str:
    """Figures stay on one line; sentences and names do not."""
    kind = ' class="name"' if len(text) > LONGEST_FIGURE else ""
    return f"<td{kind}>{escape(text)}</td>"


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>{content}" if content else ""


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}.</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _alarms(report: ReportCalibrationResponse) -> str:
    rows = [(f"{each.alarm_time.ToDatetime():%Y-%m-%d %H:%M}", each.note or "a level moved", each.version) for each in report.alarms]
    return _table(("when (UTC)", "which level", "version"), rows) if rows else ""


_GROUP_HEADS = (
    "group",
    "needs",
    "found",
    "interval",
    "promised",
    "missed",
    "rejected",
    "ran",
    "wrongly",
    "alarms",
    "told",
    "now",
)


_LEGEND = (
    "found: share of needs at or under the bound that was given; ran: rejected jobs that ran all the same; wrongly: those of them that "
    "needed no more than the card; told: needs that rest on the allocator's statistics."
)


def _groups(groups: Sequence[CalibrationAudit]) -> str:
    rows = [_group(group) for group in groups]
    columns = len(_GROUP_HEADS) if any(row[-1] for row in rows) else len(_GROUP_HEADS) - 1  # nothing is the matter now
    table = _table(_GROUP_HEADS[:columns], [row[:columns] for row in rows])
    return f'{table}<p class="soft">{escape(_LEGEND)}</p>' if rows else ""


def _group(group: CalibrationAudit) -> Sequence[str]:
    rows = group.labels.told_rows + group.labels.device_only_rows
    below = ["below what was promised"] if group.below_promise else []
    now = [*below, *(words.reason_text(word) for word in group.trust_reasons), *(["an alarm is open"] if group.alarm_open else [])]
    return (
        group.group,
        f"{group.needs:,}",
        words.percent(group.coverage) if group.needs else "",
        f"{words.percent(group.coverage_low)} to {words.percent(group.coverage_high)}" if group.needs else "",
        words.percent(group.promised_coverage) if group.HasField("promised_coverage") else "",
        f"{group.misses:,}",
        f"{group.rejections.predictions:,}",
        f"{group.rejections.attempts:,}",
        f"{group.rejections.false_rejections:,}",
        f"{group.alarms:,}",
        words.percent(group.labels.told_rows / rows) if rows else "",
        "; ".join(now),
    )
