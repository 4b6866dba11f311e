"""An audit of the margin as text: in its first lines whether it can be trusted and what to do, then a line a group."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from peakgate.client.render import audit_words as words
from peakgate.client.render.answer import print_list
from peakgate.client.render.suggestions import print_hanging
from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import utc
from peakgate.v1.calibration_report_pb2 import CalibrationAudit, ReportCalibrationResponse

_STYLES = {"trusted": "bold green", "distrusted": "bold red", "unknown": "bold yellow"}
_MOST_GROUPS = 40
_TABLE_COLUMNS = 150
"""A group's name takes 40 letters, its figures 110."""
_LEGEND = (
    "kept: share of needs at or under the bound that was given, ! below what was promised; ran: rejected jobs that ran all the same; "
    "told: needs that rest on the allocator's statistics"
)
_MOST_ALARMS = 10
_NUMBERS = ("needs", "kept", "interval", "promised", "missed", "waste", "rejected", "ran", "by mistake", "alarms", "told")


def print_audit(console: Console, report: ReportCalibrationResponse) -> None:
    """The finding, why, what to do; the groups; what else tells how good the facts are."""
    style = _STYLES.get(report.trust, "bold")
    console.print(f"[{style}]{escape(words.headline(report))}.[/]", soft_wrap=not console.is_terminal)
    for why, advice in words.reasons(report):
        print_hanging(console, f"{escape(why)}.", "because", indent=2)
        if advice:
            print_hanging(console, escape(advice), "→", indent=2)
    if report.trust == "trusted" and not report.trust_reasons:
        print_hanging(console, "nothing to do", "→", indent=2)
    since, until = utc(report.since_time), utc(report.until_time)
    console.print(f"  Attempts that ended from {since} to {until}", style="dim", soft_wrap=True)
    console.print(f"  Calibration {escape(report.version or 'none')}", style="dim", soft_wrap=True)
    if below := words.below_finding(report.groups):
        console.print()
        print_hanging(console, f"{escape(below)}.", "!", indent=2)
    _print_groups(console, report.groups, max(len(report.groups), report.groups_among))
    print_list(console, "Over all groups", words.overall_findings(report))
    print_list(console, "Drift alarms, newest last", _alarms(report))


def _print_groups(console: Console, groups: Sequence[CalibrationAudit], among: int) -> None:
    """A line a group where there is room for it, else a sentence."""
    if not groups:
        return
    console.print()
    if console.width >= _TABLE_COLUMNS:
        _print_table(console, groups[:_MOST_GROUPS])
    else:
        for group in groups[:_MOST_GROUPS]:
            console.print(f"  {escape(group.group)}", soft_wrap=True)
            print_hanging(console, _sentence(group), " ")
    if among > _MOST_GROUPS:
        console.print(f"  and {among - _MOST_GROUPS:,} groups more: --output json has {len(groups):,}", style="dim")


def _print_table(console: Console, groups: Sequence[CalibrationAudit]) -> None:
    table = plain_table()
    table.add_column("group", overflow="fold")
    for heading in _NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(*_cells(group))
    console.print(table)
    console.print(_LEGEND, style="dim", soft_wrap=not console.is_terminal)


def _sentence(group: CalibrationAudit) -> str:
    found = words.coverage_finding(group)
    rejections = group.rejections
    parts = (
        f"below what was promised! {found}" if group.below_promise else found,
        words.waste_finding(group).replace("Bounds", "bounds", 1),
        f"{rejections.predictions:,} rejected, {rejections.attempts:,} ran all the same, {rejections.false_rejections:,} wrongly rejected",
        f"{words.counted(group.alarms, 'alarm')}{', one open' if group.alarm_open else ''}" if group.alarms or group.alarm_open else "",
        *(words.reason_text(word) for word in group.trust_reasons),
    )
    return escape("; ".join(part for part in parts if part))


def _cells(group: CalibrationAudit) -> tuple[str, ...]:
    labels = group.labels
    rows = labels.told_rows + labels.device_only_rows
    mark = "!" if group.below_promise else ""
    why = "".join(f"\n  {words.reason_text(word)}" for word in group.trust_reasons)
    return (
        escape(group.group) + why,
        f"{group.needs:,}",
        mark + words.percent(group.coverage) if group.needs else "",
        f"{words.percent(group.coverage_low)} to {words.percent(group.coverage_high)}" if group.needs else "",
        words.percent(group.promised_coverage) if group.HasField("promised_coverage") else "",
        f"{group.misses:,}",
        words.signed_gb(group.mean_waste_bytes) if group.HasField("mean_waste_bytes") else "",
        f"{group.rejections.predictions:,}",
        f"{group.rejections.attempts:,}",
        f"{group.rejections.false_rejections:,}",
        f"{group.alarms:,}{' (open)' if group.alarm_open else ''}",
        words.percent(labels.told_rows / rows) if rows else "",
    )


def _alarms(report: ReportCalibrationResponse) -> list[str]:
    newest = report.alarms[-_MOST_ALARMS:]
    return [f"{utc(alarm.alarm_time)} {alarm.note or 'a level moved'} (version {alarm.version})" for alarm in newest]
