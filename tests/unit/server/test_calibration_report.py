"""The audit as a message: who stands first, what is open now, and how much is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest
from tests.unit.server.test_audited import ROW

from peakgate.calibration import Snapshot
from peakgate.calibration.node import STALE_SECONDS, NodeView
from peakgate.calibration.trust import ROWS, Trust
from peakgate.server.calibration_report import MOST_GROUPS, MOST_POINTS, report, window_of
from peakgate.server.errors import PeakgateError
from peakgate.server.store.audit_records import AlarmRow, AuditCounts, AuditRow, AuditWindow, NoAudit
from peakgate.server.store.null import NullStore
from peakgate.v1.calibration_report_pb2 import ReportCalibrationRequest, ReportCalibrationResponse
from peakgate.v1.times import timestamp

WINDOW = AuditWindow(since_us=0, until_us=1 << 50)
GROUP, FRAMEWORK = "h100-80gb/3g.40gb/torch-2.9/fsdp/one node", "torch-2.9/fsdp"


class OfRows(NoAudit):
    """These rows, and what SQL would have counted beside them."""

    def __init__(self, rows: list[AuditRow], alarms: list[AlarmRow], counts: AuditCounts) -> None:
        self._rows, self._alarms, self._counts = rows, alarms, counts

    def counts(self) -> AuditCounts:
        """As given, with the rows counted."""
        return dataclasses.replace(self._counts, rows=len(self._rows))

    def rows(self) -> Iterator[AuditRow]:
        """As given."""
        return iter(self._rows)

    def alarms(self) -> list[AlarmRow]:
        """As given."""
        return self._alarms


class StoreOfRows(NullStore):
    """A store whose every window holds the same."""

    def __init__(self, source: OfRows) -> None:
        self._source = source

    def audit(self, window: AuditWindow) -> AbstractContextManager[NoAudit]:
        """Always the same."""
        return nullcontext(self._source)


def reported(
    *rows: AuditRow,
    snapshot: Snapshot = Snapshot(),  # noqa: B008 - it is frozen
    alarms: list[AlarmRow] | None = None,
    counts: AuditCounts = AuditCounts(),  # noqa: B008 - it is frozen
) -> ReportCalibrationResponse:
    """The audit of these rows under a snapshot."""
    store = StoreOfRows(OfRows(list(rows), alarms or [], counts))
    return report(store, snapshot, WINDOW, coverage=0.95, with_users=False)


def a_row(**changes: object) -> AuditRow:
    """A need within its bound."""
    return dataclasses.replace(ROW, **changes)  # type: ignore[arg-type]  # the names are those of the record


def test_the_group_with_most_needs_comes_first() -> None:
    """Then by name; a group of which only rejections are known has no needs, and one without a name is in the whole alone."""
    rows = [a_row(group="b"), a_row(group="c"), a_row(group="c"), a_row(group="a"), a_row(group="")]
    found = reported(*rows, counts=AuditCounts(rejections={"d": 3}))
    assert [(group.group, group.needs) for group in found.groups] == [("c", 2), ("a", 1), ("b", 1), ("d", 0)]
    assert (found.overall.needs, found.overall.rejections.predictions) == (5, 3)


def test_what_is_open_now_is_that_of_the_snapshot() -> None:
    """An alarm of the framework is one of each of its groups, also on a slice of a card; another framework's is not."""
    nodes = {
        f"framework {FRAMEWORK}": NodeView(theta=(0, 0, 0), alarmed=True, exact_rows=9),
        "framework torch-2.9/ddp": NodeView(theta=(0, 0, 0), alarmed=False, exact_rows=9),
    }
    alarms = [AlarmRow(created_us=1, version="1.1", note=f"framework {FRAMEWORK}: needs rose; group other: needs fell")]
    other = "a100-80gb/torch-2.9/ddp/one node"
    found = {
        group.group: group
        for group in reported(a_row(group=GROUP), a_row(group=other), snapshot=Snapshot(nodes=nodes), alarms=alarms).groups
    }
    assert (found[GROUP].alarm_open, found[GROUP].alarms) == (True, 1)
    assert (found[other].alarm_open, found[other].alarms) == (False, 0)


def test_a_stale_group_says_so() -> None:
    """Its bounds are wide ones, and those of others are not."""
    old = NodeView(theta=(0, 0, 0), alarmed=False, exact_rows=9, last_exact_at=0)
    snapshot = Snapshot(nodes={f"group {GROUP}": old}, newest_at=STALE_SECONDS + 1)
    found = {group.group: list(group.trust_reasons) for group in reported(a_row(group=GROUP), a_row(group="b"), snapshot=snapshot).groups}
    assert found == {GROUP: ["GROUP_STALE"], "b": []}


def test_a_calibration_that_is_not_trusted_is_not_trusted_here() -> None:
    """The reasons are those for which Predict gives wide bounds."""
    found = reported(a_row(), snapshot=Snapshot(trust=Trust(chances=(0.0,) * ROWS)))
    assert (found.trust, found.trust_reasons[0]) == ("distrusted", "MISSES_TOO_OFTEN")
    assert list(found.overall.trust_reasons) == ["MISSES_TOO_OFTEN"]


def test_no_more_points_than_a_plot_shows() -> None:
    """Of 4,001 every third."""
    found = reported(*(a_row(finished_us=number) for number in range(2 * MOST_POINTS + 1)))
    assert (len(found.points), found.points_among, found.overall.needs) == (1334, 4001, 4001)


def test_the_time_that_is_looked_at() -> None:
    """Thirty days before the end, which is now, unless something else is asked for; an empty one is refused."""
    day = 86_400_000_000
    assert window_of(ReportCalibrationRequest(), now_us=40 * day) == AuditWindow(since_us=10 * day, until_us=40 * day)
    asked = ReportCalibrationRequest(since_time=timestamp(5), until_time=timestamp(7), group="a")
    assert window_of(asked, now_us=0) == AuditWindow(since_us=5_000_000, until_us=7_000_000, group="a")
    with pytest.raises(PeakgateError, match="since_time"):
        window_of(ReportCalibrationRequest(since_time=timestamp(7), until_time=timestamp(7)), now_us=0)


def test_no_more_groups_than_an_answer_holds() -> None:
    """Of 1,010 the thousand with most needs."""
    rows = [a_row(group=f"{number:04}") for number in range(MOST_GROUPS + 10)]
    found = reported(*rows, a_row(group="1009"))
    assert (len(found.groups), found.groups_among, found.groups[0].group) == (1000, 1010, "1009")
    assert found.overall.needs == 1011
