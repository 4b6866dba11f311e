"""When the calibration is not trusted, and the bound that then holds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.calibration.builders import GB, a_calibrator, a_history, a_subject, an_observation

from peakgate.calibration import Snapshot
from peakgate.calibration.node import STALE_SECONDS
from peakgate.calibration.pool import Score
from peakgate.calibration.trust import (
    AGENTS_SILENT,
    CLAMPED_TOO_OFTEN,
    DAY_SECONDS,
    GROUP_STALE,
    MISSES_TOO_OFTEN,
    ROWS,
    TOO_MUCH_KEPT_OUT,
    Record,
    Trust,
    reasons_of_service,
)

FIXED_BYTES = (40 + 12) * GB
"""The requirement of a_subject() and 15 % of its card."""


def chances(missed: int) -> tuple[float, ...]:
    """A full record in which so many rows passed what was promised at 5 %."""
    return (0.01,) * missed + (0.5,) * (ROWS - missed)


@pytest.mark.parametrize(("missed", "want"), [(30, ()), (31, (MISSES_TOO_OFTEN,))])
def test_three_times_the_promised_misses_are_too_many(missed: int, want: tuple[str, ...]) -> None:
    """At 5 %: 31 of 200 rows."""
    assert Trust(chances=chances(missed)).reasons(0.05) == want


def test_misses_are_counted_at_the_coverage_that_was_asked_for() -> None:
    """Rows with chances of two percent are misses of 95 %, not of 99 %."""
    trust = Trust(chances=(0.02,) * 40 + (0.5,) * 160)
    assert (trust.reasons(0.05), trust.reasons(0.01)) == ((MISSES_TOO_OFTEN,), ())


def test_a_short_record_says_nothing() -> None:
    """Before 200 rows there is no rate."""
    assert Trust(chances=(0.0,) * (ROWS - 1)).reasons(0.05) == ()


def share_after(*users_kept_out: str, rows: int = 100, at: float = 0.0) -> float:
    """Share of a day with so many rows in which one of each of these users was kept out."""
    record = Record()
    for index in range(rows):
        kept_out = index < len(users_kept_out)
        record.count(at, user=users_kept_out[index] if kept_out else "ada", kept_out=kept_out)
    return record.view([]).kept_out_share


def test_a_twentieth_of_a_days_rows_may_be_kept_out() -> None:
    """Of seven users, one of whom never counts."""
    users = [f"user-{index}" for index in range(7)]
    assert Trust(kept_out_share=share_after(*users[:6])).reasons(0.05) == ()
    assert Trust(kept_out_share=share_after(*users)).reasons(0.05) == (TOO_MUCH_KEPT_OUT,)


def test_nobody_can_turn_the_calibration_off_alone() -> None:
    """Fifty bad rows of one user change nothing; of unknown users they do."""
    assert share_after(*["mallory"] * 50) == 0.0
    assert share_after(*[""] * 50) == 0.5


def test_a_few_rows_say_nothing_of_a_day() -> None:
    """The day before stands in until there are twenty."""
    assert share_after("a", "b", "c", rows=19) == 0.0
    record = Record()
    for index in range(40):
        record.count(0.0, user="", kept_out=index < 10)
    record.count(DAY_SECONDS, user="ada", kept_out=False)
    assert record.view([]).kept_out_share == 0.25
    for _ in range(19):
        record.count(DAY_SECONDS, user="ada", kept_out=False)
    assert record.view([]).kept_out_share == 0.0


def test_label_quality_is_the_share_of_rows_that_tell() -> None:
    """Of the newest exact ones."""
    scores = [Score(0.0, True, "", "", "f", "g", row, str(row), told=row % 4 == 0) for row in range(8)]
    assert Record().view(scores).label_quality == 0.25


def test_the_service_counts_what_it_alone_sees() -> None:
    """Clamped predictions and silent nodes, above their shares."""
    assert reasons_of_service(clamped_share=0.1, silent_share=0.2) == ()
    assert reasons_of_service(clamped_share=0.11, silent_share=0.21) == (CLAMPED_TOO_OFTEN, AGENTS_SILENT)


def test_a_trusted_bound_is_the_bound() -> None:
    """Without a reason nothing is wider."""
    snapshot = a_calibrator(a_history(300)).snapshot()
    assert snapshot.trusted_bound(a_subject(), coverage=0.95) == snapshot.bound(a_subject(), coverage=0.95)
    assert snapshot.trust.miss_rate(0.05) < 0.1


def test_distrust_widens_to_the_fixed_margin() -> None:
    """At least 15 % of the card above the requirement, at least the bound at 99 %, with the reasons."""
    snapshot = replace(a_calibrator(a_history(300)).snapshot(), trust=Trust(chances=chances(60)))
    bound = snapshot.trusted_bound(a_subject(), coverage=0.95, told=(AGENTS_SILENT,))
    assert (bound.bound_bytes, bound.distrust) == (FIXED_BYTES, (MISSES_TOO_OFTEN, AGENTS_SILENT))
    without_card = a_subject(card_gb=0)
    careful = snapshot.bound(without_card, coverage=0.99)
    assert snapshot.trusted_bound(without_card, coverage=0.95).bound_bytes == careful.bound_bytes


def test_distrust_never_narrows() -> None:
    """A bound that is wider than the fixed margin stays."""
    subject = a_subject(activations_gb=38)
    snapshot = Snapshot(trust=Trust(kept_out_share=0.5))
    assert snapshot.trusted_bound(subject, coverage=0.999).bound_bytes >= snapshot.bound(subject, coverage=0.999).bound_bytes


def test_a_group_that_has_been_silent_is_stale() -> None:
    """For thirty days; only it, and a group that was never seen is young and not stale."""
    calibrator = a_calibrator([*a_history(50), an_observation(at=STALE_SECONDS + 100, of=a_subject(group="a100/fsdp/one"))])
    snapshot = calibrator.snapshot()

    def distrust_of(group: str, now: float | None = None) -> tuple[str, ...]:
        return snapshot.trusted_bound(a_subject(group=group), coverage=0.95, now=now).distrust

    assert distrust_of("h100/fsdp/one") == (GROUP_STALE,)
    assert distrust_of("h100/fsdp/one", now=1000.0) == ()
    assert distrust_of("a100/fsdp/one") == distrust_of("never") == ()


def test_a_calibration_that_is_wrong_comes_to_distrust_itself() -> None:
    """Of jobs that were all alike one in ten comes to need more and more: no level moves, and a promise of 99 % is broken."""
    alike, torn = a_history(300, scatter=0.5), a_history(120, start=301, scatter=0.5, seed=2)
    assert a_calibrator(alike).snapshot().trust.reasons(0.01) == ()
    for index in range(3, len(torn), 10):
        row = torn[index]
        need_bytes = row.lower_bytes + round((3 + index / 20) * row.subject.scale * GB)
        torn[index] = replace(row, lower_bytes=need_bytes, upper_bytes=need_bytes, subject=replace(row.subject, user=f"user-{index}"))
    calibrator = a_calibrator([*alike, *torn])
    assert calibrator.alarms == 0
    assert calibrator.snapshot().trust.reasons(0.01) == (MISSES_TOO_OFTEN,)


def test_the_record_round_trips() -> None:
    """Through JSON."""
    record = Record()
    for index in range(50):
        record.count(DAY_SECONDS * (index // 30), user=f"user-{index % 3}", kept_out=index % 4 == 0)
    again = Record.from_state(json.loads(json.dumps(record.state())))
    assert again.state() == record.state()
    assert again.view([]) == record.view([])
