"""ReportCalibration: the store's rows, audited, as a message. Blocks for seconds; the service calls it off the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from peakgate.calibration import Snapshot, Subject
from peakgate.server.audited import seen_of
from peakgate.server.calibration_audit import CONFIDENCE, Audit, Coverage, Day, Seen, Tally, fewest_needs, stride_of, verdict
from peakgate.server.clock import DAY_US, to_timestamp
from peakgate.server.errors import field_error
from peakgate.server.store.audit_records import AlarmRow, AuditCounts, AuditWindow
from peakgate.server.store.base import Store
from peakgate.server.subjects import observation_from
from peakgate.v1 import calibration_report_pb2 as pb

DEFAULT_DAYS = 30
MOST_GROUPS = 1000
"""Whoever submits jobs names their frameworks, and so makes groups: an answer stays under a megabyte."""
MOST_POINTS = 2000
"""Single attempts of a report: a plot shows no more, and they stay under a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What was counted of attempts that were kept out, by group; the empty name is all of them."""

    reasons: Mapping[str, Counter[str]]
    rejected: Counter[str]
    users: Mapping[str, frozenset[str]]


def window_of(request: pb.ReportCalibrationRequest, *, now_us: int) -> AuditWindow:
    """The time that is asked for. Raises FIELD_INVALID for one that ends before it begins."""
    until_us = request.until_time.ToMicroseconds() if request.HasField("until_time") else now_us
    since_us = request.since_time.ToMicroseconds() if request.HasField("since_time") else until_us - DEFAULT_DAYS * DAY_US
    if since_us >= until_us:
        raise field_error("since_time", "is not before until_time; state an earlier one")
    return AuditWindow(since_us=since_us, until_us=until_us, group=request.group)


def report(store: Store, snapshot: Snapshot, window: AuditWindow, *, coverage: float, with_users: bool) -> pb.ReportCalibrationResponse:
    """The audit of a window. `coverage` is the policy's. Raises STORE_UNAVAILABLE."""
    with store.audit(window) as source:
        counts = source.counts()
        audit = Audit(stride=stride_of(counts.rows, most=MOST_POINTS))
        for row in source.rows():
            audit.take(seen_of(row))
        kept = _kept(counts, source.quarantined())
        alarms = source.alarms()
    days = audit.by_day()
    reasons = snapshot.trust.reasons(1 - coverage)
    trust, why = verdict(audit.overall.coverage, days[-1].week if days else Coverage(), reasons)
    names = {*audit.groups, *counts.rejections, *kept.reasons, *(group for group, _ in counts.tries)} - {""}
    tallies = sorted(((name, audit.groups.get(name, Tally())) for name in names), key=_most_needs)
    among = len(audit.groups)
    groups = [_group(name, tally, counts, kept, alarms, snapshot, coverage, among) for name, tally in tallies[:MOST_GROUPS]]
    return pb.ReportCalibrationResponse(
        trust=trust,
        trust_reasons=why,
        version=snapshot.version,
        since_time=to_timestamp(window.since_us),
        until_time=to_timestamp(window.until_us),
        overall=_overall(audit.overall, counts, kept, alarms, reasons),
        groups=groups,
        groups_among=len(names),
        alarms=[pb.DriftAlarm(alarm_time=to_timestamp(row.created_us), version=row.version, note=row.note) for row in alarms],
        days=[_day(day) for day in days],
        points=[_point(seen) for seen in audit.in_order()],
        points_among=counts.rows,
        quarantined_users=sorted(kept.users.get("", frozenset())) if with_users else (),
        confidence=CONFIDENCE,
        fewest_needs=fewest_needs(audit.overall.coverage.promised or coverage),
    )


def _most_needs(pair: tuple[str, Tally]) -> tuple[int, str]:
    name, tally = pair
    return -tally.coverage.needs, name


def _kept(counts: AuditCounts, quarantined: Iterable[tuple[str, str]]) -> _Kept:
    reasons: dict[str, Counter[str]] = {}
    rejected: Counter[str] = Counter()
    for (group, reason, word), rows in counts.kept_out.items():
        for name in {group, ""}:
            reasons.setdefault(name, Counter())[reason] += rows
            rejected[name] += rows if word == "REJECT" else 0
    users: dict[str, set[str]] = {}
    for group, body in quarantined:
        user = observation_from(body).subject.user if body else ""
        for name in {group, ""}:
            users.setdefault(name, set()).add(user)
    return _Kept(reasons=reasons, rejected=rejected, users={name: frozenset(found) for name, found in users.items()})


def _overall(tally: Tally, counts: AuditCounts, kept: _Kept, alarms: list[AlarmRow], reasons: tuple[str, ...]) -> pb.CalibrationAudit:
    message = _audit("", tally, kept, among=1)
    message.rejections.predictions = sum(counts.rejections.values())
    message.tries.CopyFrom(_tries({state: rows for (_, state), rows in _summed(counts.tries).items()}))
    message.alarms = len(alarms)
    message.trust_reasons.extend(reasons)
    return message


def _summed(tries: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
    total: Counter[tuple[str, str]] = Counter()
    for (_, state), rows in tries.items():
        total["", state] += rows
    return total


def _group(
    name: str,
    tally: Tally,
    counts: AuditCounts,
    kept: _Kept,
    alarms: list[AlarmRow],
    snapshot: Snapshot,
    coverage: float,
    among: int,
) -> pb.CalibrationAudit:
    levels = _levels(name, snapshot)
    message = _audit(name, tally, kept, among=among)
    message.rejections.predictions = counts.rejections.get(name, 0)
    message.tries.CopyFrom(_tries({state: rows for (group, state), rows in counts.tries.items() if group == name}))
    message.alarms = sum(any(f"{level}: " in row.note for level in levels) for row in alarms)
    message.alarm_open = any(snapshot.nodes[level].alarmed for level in levels if level in snapshot.nodes)
    one = Subject(group=name, framework="", required_bytes=1, device_bytes=1)  # whether a bound is trusted depends on the group alone
    message.trust_reasons.extend(snapshot.trusted_bound(one, coverage=coverage).distrust)
    return message


def _levels(group: str, snapshot: Snapshot) -> list[str]:
    """Names of the group's own node and of its framework's, which stands between the card and the rest of the group's name."""
    frameworks = (name for name in snapshot.nodes if name.startswith("framework "))
    return [f"group {group}", *(name for name in frameworks if f"/{name.removeprefix('framework ')}/" in f"{group}/")]


def _audit(name: str, tally: Tally, kept: _Kept, *, among: int) -> pb.CalibrationAudit:
    found = tally.coverage
    low, high = found.interval()
    return pb.CalibrationAudit(
        group=name,
        exact_rows=tally.exact_rows,
        needs=found.needs,
        misses=found.misses,
        out_of_memory_misses=tally.out_of_memory_misses,
        coverage=found.found,
        coverage_low=low if found.needs else None,
        coverage_high=high if found.needs else None,
        promised_coverage=found.promised,
        below_promise=found.is_below(among=among),
        mean_waste_bytes=tally.mean_waste_bytes,
        rejections=pb.Rejections(
            attempts=tally.rejected_attempts + kept.rejected[name],
            false_rejections=tally.false_rejections,
            right_rejections=tally.right_rejections,
        ),
        labels=pb.LabelQuality(
            told_rows=tally.told_rows, device_only_rows=tally.exact_rows - tally.told_rows, greedy_rows=tally.greedy_rows
        ),
        kept_out=[pb.KeptOut(reason=reason, rows=rows) for reason, rows in sorted(kept.reasons.get(name, Counter()).items(), key=_most)],
        quarantined_users=len(kept.users.get(name, frozenset())),
    )


def _most(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _tries(by_state: Mapping[str, int]) -> pb.Tries:
    granted, fitted, oom = sum(by_state.values()), by_state.get("finished", 0), by_state.get("oom", 0)
    return pb.Tries(granted=granted, fitted=fitted, oom=oom, unknown=granted - fitted - oom)


def _day(day: Day) -> pb.AuditDay:
    low, high = day.week.interval()
    return pb.AuditDay(
        day_time=to_timestamp(day.number * DAY_US),
        needs=day.needs,
        misses=day.misses,
        week_needs=day.week.needs,
        week_coverage=day.week.found,
        week_coverage_low=low,
        week_coverage_high=high,
        week_promised_coverage=day.week.promised,
        week_below_promise=day.is_below,
    )


def _point(seen: Seen) -> pb.AuditPoint:
    return pb.AuditPoint(
        group=seen.group,
        kind=seen.kind,
        missed=seen.is_miss,
        required_bytes=seen.required_bytes,
        bound_bytes=seen.bound_bytes,
        need_bytes=round(seen.need_bytes),
        lower_bytes=seen.lower_bytes,
        upper_bytes=seen.upper_bytes or 0,
        finish_time=to_timestamp(seen.finished_us),
    )
