"""Audits as the service answers them, with full defaults. `python -m tests.unit.client.audits` writes the golden ones anew."""

from __future__ import annotations

import io
import random
from pathlib import Path

from rich.console import Console

from peakgate.client.render.audit import print_audit
from peakgate.client.render.audit_page import audit_page
from peakgate.v1.calibration_report_pb2 import (
    AuditDay,
    AuditPoint,
    CalibrationAudit,
    DriftAlarm,
    KeptOut,
    LabelQuality,
    Rejections,
    ReportCalibrationResponse,
    Tries,
)
from peakgate.v1.times import timestamp

GOLDEN = Path(__file__).parents[2] / "golden"
GB = 10**9
DAY = 86_400
BEGIN = 1_767_225_600  # 2026-01-01


def an_audit(group: str = "", **fields: object) -> CalibrationAudit:
    """Of 100 needs, of which 4 passed their bound."""
    values: dict[str, object] = {
        "group": group,
        "exact_rows": 99,
        "needs": 100,
        "misses": 4,
        "out_of_memory_misses": 1,
        "coverage": 0.96,
        "coverage_low": 0.902,
        "coverage_high": 0.984,
        "promised_coverage": 0.95,
        "mean_waste_bytes": 2.5e9,
        "rejections": Rejections(predictions=20, attempts=5, false_rejections=1, right_rejections=3),
        "tries": Tries(granted=4, fitted=1, oom=2, unknown=1),
        "labels": LabelQuality(told_rows=33, device_only_rows=66, greedy_rows=2),
        "kept_out": [KeptOut(reason="CARD_FULL", rows=7), KeptOut(reason="USER_QUARANTINED", rows=2)],
        "quarantined_users": 1,
        "alarms": 1,
    }
    return CalibrationAudit(**(values | fields))  # type: ignore[arg-type]  # protobuf checks the types


def a_day(number: int, **fields: object) -> AuditDay:
    """Twenty needs, and 96 % of the week."""
    values: dict[str, object] = {
        "day_time": timestamp(BEGIN + number * DAY),
        "needs": 20,
        "misses": 1,
        "week_needs": 100,
        "week_coverage": 0.96,
        "week_coverage_low": 0.902,
        "week_coverage_high": 0.984,
        "week_promised_coverage": 0.95,
    }
    return AuditDay(**(values | fields))  # type: ignore[arg-type]  # protobuf checks the types


def a_point(need_gb: float = 41, **fields: object) -> AuditPoint:
    """An exact need of a job that was predicted to need 40 GB and bounded at 42 GB."""
    values: dict[str, object] = {
        "group": "a100-80gb/torch/ddp/one node",
        "kind": "exact",
        "missed": need_gb > 42,
        "required_bytes": 40 * GB,
        "bound_bytes": 42 * GB,
        "need_bytes": int(need_gb * GB),
        "lower_bytes": int(need_gb * GB),
        "upper_bytes": int(need_gb * GB),
        "finish_time": timestamp(BEGIN + DAY),
    }
    return AuditPoint(**(values | fields))  # type: ignore[arg-type]  # protobuf checks the types


def a_report(**fields: object) -> ReportCalibrationResponse:
    """Five days of two groups, with an alarm."""
    values: dict[str, object] = {
        "trust": "trusted",
        "version": "1.100",
        "since_time": timestamp(BEGIN),
        "until_time": timestamp(BEGIN + 30 * DAY),
        "overall": an_audit(),
        "groups": [an_audit("a100-80gb/torch/ddp/one node"), an_audit("h100-80gb/torch/fsdp/one node")],
        "alarms": [DriftAlarm(alarm_time=timestamp(BEGIN + 2 * DAY), version="1.50", note="framework torch/ddp: needs rose")],
        "days": [a_day(number) for number in range(5)],
        "points": [a_point(), a_point(43), a_point(80, kind="lower", upper_bytes=0, missed=True), a_point(10, kind="lower", upper_bytes=0)],
        "points_among": 4,
        "confidence": 0.95,
        "fewest_needs": 59,
    }
    return ReportCalibrationResponse(**(values | fields))  # type: ignore[arg-type]  # protobuf checks the types


HOSTILE = "<script>alert(1)</script>\x1b[31m[bold]\u202e\"'&]]>"
"""A name that would do something wherever it is not escaped."""


def a_wide_report(groups: int = 40, *, points: int = 2000) -> ReportCalibrationResponse:
    """Many groups with long and hostile names, a drift that is not over, and as many points as a report has."""
    draw = random.Random(1)
    names = [f"h100-80gb/3g.40gb/huggingface-4.5{number}/fsdp/several nodes/expandable segments/compiled" for number in range(groups)]
    names[0] = HOSTILE
    audits = [
        an_audit(
            name,
            mean_waste_bytes=draw.uniform(-0.5, 6) * GB,
            below_promise=number < 5,
            trust_reasons=["GROUP_STALE"] if number == 3 else [],
        )
        for number, name in enumerate(names)
    ]
    days = [a_day(number) for number in range(20)]
    days += [
        a_day(number, week_coverage=0.8, week_coverage_low=0.71, week_coverage_high=0.87, week_below_promise=True)
        for number in range(20, 25)
    ]
    return a_report(
        trust="distrusted",
        trust_reasons=["MISSES_TOO_OFTEN", "COVERAGE_BELOW_PROMISE", "NEW_WORD"],
        groups=audits,
        days=days,
        points=[_drawn(draw) for _ in range(points)],
        points_among=9_000,
        quarantined_users=[HOSTILE, ""],
    )


def _drawn(draw: random.Random) -> AuditPoint:
    required = draw.uniform(5, 139)
    need = required * draw.gauss(1.02, 0.02)
    bound = required * 1.06
    return a_point(
        need,
        required_bytes=int(required * GB),
        bound_bytes=int(bound * GB),
        missed=need > bound,
        group=HOSTILE,
    )


def printed(report: ReportCalibrationResponse) -> str:
    """What a pipe gets."""
    console = Console(file=io.StringIO(), width=200, highlight=False)
    print_audit(console, report)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


if __name__ == "__main__":
    (GOLDEN / "audit_small.txt").write_text(printed(a_report()), encoding="utf-8")
    (GOLDEN / "audit_small.html").write_text(audit_page(a_report()), encoding="utf-8")
