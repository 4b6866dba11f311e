"""Shares that make the service distrust its calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.calibration.builders import a_calibrator, a_history, a_subject

from peakgate.calibration import Snapshot, Subject
from peakgate.calibration.trust import AGENTS_SILENT, CLAMPED_TOO_OFTEN, MOST_CLAMPED, MOST_SILENT
from peakgate.server.assess import Assessor
from peakgate.server.distrust import MIN_JOBS, MIN_NODES, Watch, clamped_share, silent_share
from peakgate.server.judge import Judge
from peakgate.server.logs import QuietLogger
from peakgate.server.memory import MemoryModel
from peakgate.server.metrics import NullMetrics
from peakgate.server.policy import Policy
from peakgate.server.store.null import NullStore
from peakgate.server.store.records import RecentRow, Silence
from peakgate.server.subjects import subject_text

SNAPSHOT = a_calibrator(a_history(300)).snapshot()
USUAL = a_subject(user="")
ODD = a_subject(user="", activations_gb=60.0, required_gb=70.0)
"""A residual as large as its activations is more than is ever taken for one: 28 GB on this card."""


def rows(subject: Subject, count: int, *, user: str = "", first: int = 0) -> list[RecentRow]:
    """Different jobs that the calibration knows alike."""
    return [RecentRow(job_digest=str(number), user=user, subject=subject_text(subject)) for number in range(first, first + count)]


@pytest.fixture
def raised(memory: MemoryModel) -> Assessor:
    """A calibration whose level has run away for jobs with large activations."""
    view = SNAPSHOT.nodes["framework fsdp"]
    away = {**SNAPSHOT.nodes, "framework fsdp": replace(view, theta=(0.0, 1.0, 0.0))}
    return Assessor(memory=memory, snapshot=replace(SNAPSHOT, nodes=away), policy=Policy())


def test_the_odd_job_meets_its_limit_and_the_usual_does_not(raised: Assessor) -> None:
    """So the tests below count what they mean."""
    assert raised.bound(ODD)[1].clamped
    assert not raised.bound(USUAL)[1].clamped


def test_the_share_is_of_different_jobs(raised: Assessor) -> None:
    """A job that is asked about a thousand times counts once; old rows without a subject, and textbook jobs, not at all."""
    textbook = replace(ODD, framework="textbook")
    nothing = [RecentRow(job_digest="old", user="", subject="")]
    found = [*rows(USUAL, 80), *rows(ODD, 20, first=80), *rows(ODD, 1, first=80) * 1000, *rows(textbook, 50, first=200), *nothing]
    assert clamped_share(found, raised) == pytest.approx(0.2)


def test_few_jobs_say_nothing(raised: Assessor) -> None:
    """A laptop with three models is not an alarm."""
    assert clamped_share(rows(ODD, MIN_JOBS - 1), raised) == 0.0
    assert clamped_share(rows(ODD, MIN_JOBS), raised) == 1.0


def test_nobody_turns_the_calibration_off_alone(raised: Assessor) -> None:
    """The user with most of them does not count, unless nobody says who they are."""
    found = [*rows(USUAL, 80), *rows(ODD, 40, first=80, user="mallory"), *rows(ODD, 6, first=120, user="bob")]
    assert clamped_share(found, raised) == pytest.approx(6 / 126)
    assert clamped_share(found, raised) < MOST_CLAMPED


def test_the_share_is_that_of_the_calibration_of_now(raised: Assessor) -> None:
    """After a rollback the same predictions meet no limit any more, and trust is back at once."""
    found = rows(ODD, 100)
    assert clamped_share(found, raised) == 1.0
    assert clamped_share(found, replace(raised, snapshot=SNAPSHOT)) == 0.0


@pytest.mark.parametrize(
    ("silence", "want"),
    [
        (Silence(nodes=0, silent=0), 0.0),
        (Silence(nodes=1, silent=1), 0.0),
        (Silence(nodes=MIN_NODES - 1, silent=MIN_NODES - 1), 0.0),
        (Silence(nodes=MIN_NODES, silent=1), 0.2),
        (Silence(nodes=100, silent=21), 0.21),
    ],
)
def test_a_laptop_whose_agent_was_stopped_is_no_alarm(silence: Silence, want: float) -> None:
    """Below five nodes a single one would pass the limit, and of five one does not."""
    assert silent_share(silence) == pytest.approx(want)
    assert (want > MOST_SILENT) == (silence.silent > MOST_SILENT * silence.nodes and silence.nodes >= MIN_NODES)


class CountedStore(NullStore):
    """A store that counts what it is told to."""

    def __init__(self) -> None:
        self.silent, self.asked = 0, 0

    def recent(self, limit: int) -> list[RecentRow]:
        """A hundred usual jobs."""
        return rows(USUAL, min(limit, 100))

    def silence(self, *, began_us: int, forgotten_us: int, silent_us: int) -> Silence:
        """Of a hundred nodes."""
        assert began_us < forgotten_us < silent_us
        self.asked += 1
        return Silence(nodes=100, silent=self.silent)


def a_watch(memory: MemoryModel, store: CountedStore, clock: Callable[[], int]) -> tuple[Judge, Watch]:
    """A judge that is watched."""
    judge = Judge(memory, SNAPSHOT, Policy())
    return judge, Watch(judge, store, clock=clock, metrics=NullMetrics(), log=QuietLogger())


async def test_the_judge_is_told_and_told_again(memory: MemoryModel) -> None:
    """Answers that were made under another trust are dropped; a new snapshot changes nothing of what was told."""
    store, now_us = CountedStore(), [10**15]
    judge, watch = a_watch(memory, store, lambda: now_us[0])
    await watch.run()
    trusting = judge.assessor
    assert trusting.told == ()
    store.silent, now_us[0] = 30, now_us[0] + 60_000_000
    await watch.run()
    assert judge.assessor is trusting  # nodes are not counted every minute
    now_us[0] += 600_000_000
    await watch.run()
    assert (judge.assessor.told, store.asked) == ((AGENTS_SILENT,), 2)
    judge.swap(Snapshot())
    assert judge.assessor.told == (AGENTS_SILENT,)
    assert AGENTS_SILENT in judge.assessor.bound(USUAL)[1].distrust
    store.silent, now_us[0] = 0, now_us[0] + 600_000_000
    await watch.run()
    assert not judge.assessor.told


async def test_equal_shares_leave_the_cache_alone(memory: MemoryModel) -> None:
    """A count that changes nothing costs no answer."""
    judge, watch = a_watch(memory, CountedStore(), lambda: 10**15)
    await watch.run()
    assessor = judge.assessor
    await watch.run()
    assert judge.assessor is assessor


def test_clamped_too_often_is_told(memory: MemoryModel, raised: Assessor) -> None:
    """As a reason of the bound, which is then a wide one."""
    told = replace(raised, told=(CLAMPED_TOO_OFTEN,))
    bound = told.bound(USUAL)[1]
    assert bound.distrust == (CLAMPED_TOO_OFTEN,)
    assert bound.bound_bytes >= USUAL.required_bytes + 0.15 * USUAL.card_bytes
