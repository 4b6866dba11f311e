"""An audit of the margin as text: in its first lines whether it can be trusted and what to do, then a line a group."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from peakgate.client.render import audit_words as words
from peakgate.client.render.answer import print_list
from peakgate.client.render.text import escape
from peakgate.v1.calibration_report_pb2 import CalibrationAudit, ReportCalibrationResponse

_STYLES = {"trusted": "bold green", "distrusted": "bold red", "unknown": "bold yellow"}
_MOST_GROUPS = 40
_MOST_ALARMS = 10
_NUMBERS = ("needs", "kept", "interval", "promised", "missed", "waste", "rejected", "ran", "by mistake", "alarms", "told")


def print_audit(console: Console, report: ReportCalibrationResponse) -> None:
    """The finding, why, what to do; the groups; what else tells how good the facts are."""
    console.print(f"[{_STYLES.get(report.trust, 'bold')}]{escape(words.headline(report))}.[/]", soft_wrap=True)
    for why, advice in words.reasons(report):
        console.print(f"  Because {escape(why)}.", soft_wrap=True)
        if advice:
            console.print(f"  → {escape(advice)}", soft_wrap=True)
    if report.trust == "trusted" and not report.trust_reasons:
        console.print("  → nothing to do", soft_wrap=True)
    since, until = (moment.ToDatetime().strftime("%Y-%m-%d %H:%M UTC") for moment in (report.since_time, report.until_time))
    console.print(
        f"  Attempts that ended from {since} to {until}; calibration {escape(report.version or 'none')}", style="dim", soft_wrap=True
    )
    if below := words.below_finding(report.groups):
        console.print(f"\n  {escape(below)}.", soft_wrap=True)
    if report.groups:
        _print_groups(console, report.groups)
    findings = (
        words.waste_finding(report.overall),
        words.rejections_finding(report.overall),
        words.tries_finding(report.overall),
        words.labels_finding(report.overall),
        words.kept_out_finding(report.overall, report.quarantined_users),
    )
    print_list(console, "Over all groups", [finding for finding in findings if finding])
    print_list(console, "Drift alarms, newest last", _alarms(report))


def _print_groups(console: Console, groups: Sequence[CalibrationAudit]) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("group", overflow="fold")
    for heading in _NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    for group in groups[:_MOST_GROUPS]:
        table.add_row(*_cells(group))
    console.print()
    console.print(table)
    if len(groups) > _MOST_GROUPS:
        console.print(f"and {len(groups) - _MOST_GROUPS} groups more: --output json has all", style="dim")
    console.print(
        "kept: share of needs at or under the bound that was given, ! below what was promised; ran: rejected jobs that ran all the same; "
        "told: needs that rest on the allocator's statistics",
        style="dim",
        soft_wrap=True,
    )


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
    return [
        f"{alarm.alarm_time.ToDatetime():%Y-%m-%d %H:%M UTC} {alarm.note or 'a level moved'} (version {alarm.version})" for alarm in newest
    ]
