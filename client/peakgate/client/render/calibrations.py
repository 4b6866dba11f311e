"""Versions of the margin as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.trial import in_short, print_trial
from peakgate.client.render.units import utc
from peakgate.v1.calibration_service_pb2 import Calibration, PromoteCalibrationResponse, RollbackCalibrationResponse


def print_versions(console: Console, versions: Sequence[Calibration]) -> None:
    """One row a version."""
    if not versions:
        console.print("Nothing was observed yet: the margin is the prior's.")
        return
    table = _table("version", "state", "kept as", "made", "observations", "note")
    for each in versions:
        table.add_row(escape(each.version), each.state, each.kind, _made(each), str(each.observations), escape(_note(each)))
    console.print(table)


def print_version(console: Console, version: Calibration) -> None:
    """What it is, whether it is trusted, its groups, its levels."""
    facts = (version.state, version.kind, f"made {_made(version)}" if _made(version) else "", _counted(version.observations))
    console.print(f"[bold]calibration {escape(version.version)}[/bold]: {', '.join(fact for fact in facts if fact)}")
    if version.note:
        console.print(escape(version.note))
    if version.HasField("trial"):
        print_trial(console, version.trial)
    trusted = "trusted; whether its promises are kept: peakgate calibration report"
    console.print(f"not trusted: {', '.join(version.distrust)}" if version.distrust else trusted)
    if not version.groups and not version.levels:
        console.print("Nothing was observed yet: the margin is the prior's.")
        return
    for rows, print_rows in ((version.groups, _print_groups), (version.levels, _print_levels)):
        if rows:
            console.print()
            print_rows(console, version)


def print_switch(console: Console, switched: PromoteCalibrationResponse | RollbackCalibrationResponse) -> None:
    """From where to where, and what is set aside."""
    version, before = switched.calibration, switched.from_version
    if version.version == before:
        console.print(f"calibration {escape(before)} was active already")
        return
    console.print(f"calibration {escape(before)} -> {escape(version.version)} (made {_made(version)}, {_counted(version.observations)})")
    if switched.set_aside:
        rows = f"{_counted(switched.set_aside)} {'is' if switched.set_aside == 1 else 'are'} set aside"
        console.print(f"{rows}; to take in what was observed since: peakgate calibration promote {escape(before)}")


def _note(version: Calibration) -> str:
    on_trial = in_short(version.trial) if version.state == "shadow" else ""
    return "; ".join(filter(None, (on_trial, version.note)))


def _print_groups(console: Console, version: Calibration) -> None:
    table = _table("group", "margin", "observations", "needed / predicted")
    for group in version.groups:
        table.add_row(escape(group.group), f"{group.margin_ratio:+.1%}", str(group.observations), f"{group.median_ratio:.3f}")
    console.print(table)
    console.print("margin: of a typical job's bound over its requirement; needed / predicted: the median", style="dim")


def _print_levels(console: Console, version: Calibration) -> None:
    table = _table("level", "observations", "alarms", "versions met")
    for level in version.levels:
        alarms = f"{level.alarms}, one open" if level.alarmed else str(level.alarms)
        table.add_row(escape(level.level), str(level.observations), alarms, escape(", ".join(level.versions)))
    console.print(table)
    told = "alarms: how often its jobs came to need more or less, or ran a version that it had not met; while one is open bounds are wider"
    console.print(told, style="dim")


def _table(*headings: str) -> Table:
    table = plain_table()
    for heading in headings:
        right = heading in ("observations", "margin", "needed / predicted", "alarms")
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=heading in ("version", "made"))
    return table


def _counted(observations: int) -> str:
    return "1 observation" if observations == 1 else f"{observations} observations"


def _made(version: Calibration) -> str:
    return utc(version.create_time) if version.HasField("create_time") else ""
