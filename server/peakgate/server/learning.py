"""The margin's single writer: ended jobs in, a new calibration out, each applied once and in the order of their ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from peakgate.calibration import Calibrator, Outcome
from peakgate.calibration.calibrator import OUT_OF_ORDER
from peakgate.server.accuracy import Accuracy
from peakgate.server.classing import Kind
from peakgate.server.clock import DAY_US, MICROSECONDS, Clock
from peakgate.server.errors import PeakgateError
from peakgate.server.groups import GroupSummary, groups_json
from peakgate.server.judge import Judge
from peakgate.server.kinds import kind_of
from peakgate.server.lease import LeaseKeeper
from peakgate.server.lengths import at_length
from peakgate.server.logs import Logger
from peakgate.server.margin import History, Margin, is_of_other_keys, margin_from
from peakgate.server.metrics import Metrics
from peakgate.server.observe import NO_PEAKS, Observed, observe
from peakgate.server.rebuild import NEAR, rebuilt
from peakgate.server.shadow import Shadow
from peakgate.server.shadowing import Shadowing
from peakgate.server.store.base import Store
from peakgate.server.store.records import Attempt, CalibrationRow, Lease, ObservationRow
from peakgate.server.subjects import observation_text
from peakgate.server.versions import HISTORY_DAYS, kind_and_note

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One applied attempt."""

    attempt: Attempt
    observed: Observed
    outcome: Outcome


Due = list[tuple[Attempt, Observed]]
"""Ended attempts, and what each says."""

LEARNED = "LEARNED"
"""The metric's word for an attempt that was not kept out."""

MOST_AT_ONCE = 500
"""Attempts that one transaction takes in: whoever writes beside it waits for a part of a second at most."""

THIN_EVERY = 25
"""Versions after which those that nobody goes back to are deleted: looking for them takes some 0.1 s with a year of kept ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRules:
    """How long the ends of jobs are waited for, how long versions are kept, and whether a shadow that passes its trial is promoted."""

    settle_seconds: float = 600.0
    quiet_seconds: float = 0.0
    history_days: float = HISTORY_DAYS
    promotes: bool = True


class Learner:
    """Learns from ended jobs, while this server is the one that writes, and swaps the judge's snapshot.

    Nothing is lost by a crash: an ended job that was not applied is found again, because the peaks and the events are in the
    store before they are acknowledged, and the mark of an applied one is committed together with the state it changed.
    """

    def __init__(
        self, judge: Judge, store: Store, keeper: LeaseKeeper, rules: LearningRules, *, clock: Clock, metrics: Metrics, log: Logger
    ) -> None:
        self._judge = judge
        self._store = store
        self._keeper = keeper
        self._history_us = int(rules.history_days * DAY_US)
        self._clock = clock
        self._settle_us = int(rules.settle_seconds * MICROSECONDS)
        self._quiet_us = int(rules.quiet_seconds * MICROSECONDS)
        self._metrics = metrics
        self._log = log
        self._accuracy = Accuracy(metrics=metrics)
        self._with_margin: set[tuple[str, str]] = set()
        self._lock = asyncio.Lock()
        self._sequence = self._made_us = 0
        self._margin = Margin(Calibrator(epoch=judge.memory.version))
        self._version = self._margin.version
        self._groups = self._margin.groups()
        self.shadows = Shadowing(store, judge.memory, promotes=rules.promotes, clock=clock, log=log)
        self._shown = 0, self.shadows.seen

    @property
    def margin(self) -> Margin:
        """The active margin. It never changes: learning makes another one."""
        return self._margin

    @property
    def sequence(self) -> int:
        """Its place in the store; 0: it has none."""
        return self._sequence

    @property
    def writes(self) -> bool:
        """Whether this server is the one that learns."""
        return self._keeper.lease is not None

    async def alone(self, work: Callable[[Lease], T], *, by_force: bool = True) -> T:
        """Does work off the event loop under the newest calibration while nothing is learned, and shows what has come of it.

        This server is the writer from then on (not `by_force`: if no other one is). Raises STORE_UNAVAILABLE.
        """
        async with self._lock:
            try:
                await self._keeper.keep(by_force=by_force)
                return await asyncio.to_thread(self._done_alone, work, self._keeper.lease)
            finally:
                self._show()

    def _done_alone(self, work: Callable[[Lease], T], lease: Lease | None) -> T:
        if lease is None:
            raise PeakgateError("STORE_UNAVAILABLE", "another server is the calibration's writer", hint="try again")
        self._load()
        done = work(lease)
        self._load()
        self._promote_if_shown(lease)
        return done

    async def load(self) -> None:
        """Takes the active calibration of the store, when another is active than the one in memory. Raises STORE_UNAVAILABLE."""
        async with self._lock:
            await asyncio.to_thread(self._load)
            self._show()

    async def learn(self, names: Collection[str] | None = None) -> tuple[Learned, ...]:
        """Applies every ended job that was not applied yet (`names`: only of these predictions). Raises STORE_UNAVAILABLE.

        Nothing while another server is the writer: that one finds it on the list of ended attempts.
        """
        lease = self._keeper.lease
        if lease is None:
            return ()
        async with self._lock:
            try:
                learned = await asyncio.to_thread(self._learn, names, lease)
            finally:
                self._show()
        for each in learned:
            self._report(each)
        return learned

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Learns nothing inside; afterwards answers rest on the version that is active then. Raises STORE_UNAVAILABLE."""
        async with self._lock:
            yield
            await asyncio.to_thread(self._load)
            self._show()

    def _show(self) -> None:
        """Answers rest on what is in memory, also where that was read because another replica was first to learn."""
        now = self._sequence, self.shadows.seen
        if self._shown != now:
            self._shown = now
            self._swap()

    def _swap(self) -> None:
        snapshot = replace(self._margin.calibrator.snapshot(), version=self._version)
        self._judge.swap(snapshot, self.shadows.snapshot)
        self._metrics.series("peakgate_calibration_observations").set(sum(group.observations for group in self._groups))
        self._metrics.series("peakgate_calibration_alarms").set(sum(node.alarmed for node in snapshot.nodes.values()))
        margins = largest_margins(self._groups)
        for kind in self._with_margin - margins.keys():
            margins[kind] = math.nan  # a calibration that was rolled back may know fewer
        self._with_margin |= margins.keys()
        for (gpu, framework), ratio in margins.items():
            self._metrics.series("peakgate_calibration_margin_ratio", gpu_model=gpu, framework=framework).set(ratio)

    def _load(self) -> None:
        if self._store.active_sequence() != self._sequence:
            self._take(self._store.active_calibration())
        self.shadows.load(self._sequence)

    def _take(self, row: CalibrationRow | None) -> None:
        if row is None:
            return
        self._margin, self._version = self._read(row)
        self._margin.calibrator.snapshot()  # made here, off the event loop, and so are the groups
        self._groups = self._margin.groups()
        self._sequence, self._made_us = row.sequence, row.created_us

    def _read(self, row: CalibrationRow) -> tuple[Margin, str]:
        """The stored margin and its name; one that cannot be read is made again from what was observed, as far as that was kept.

        What was learned under another memory model, or by other keys, does not hold: it begins anew, and wants its history.
        """
        memory = self._judge.memory
        anew = Margin(Calibrator(epoch=memory.version), history=History.WANTED)
        if is_of_other_keys(row.body):
            self._log.warning("calibration of another format", version=row.version)
            return anew, anew.version
        try:
            margin = margin_from(row.body)
        except ValueError as error:
            self._log.warning("calibration cannot be read", cause=str(error))
            again = rebuilt(self._store, row.sequence, (), memory=memory)
            return again.margin if again is not None else anew, row.version
        if margin.calibrator.epoch == memory.version:
            return margin, row.version
        self._log.warning("calibration of another memory model", found=margin.calibrator.epoch, want=memory.version)
        return anew, anew.version

    def _promote_if_shown(self, lease: Lease) -> None:
        if self.shadows.promote_if_shown(self.row_of, self._sequence, lease):
            self._load()

    def _learn(self, names: Collection[str] | None, lease: Lease) -> tuple[Learned, ...]:
        """One new version takes in all that is due."""
        due = [(attempt, self._observe(attempt)) for attempt in self._due(names)]
        unsettled_us = self._clock() - self._settle_us
        # Without a peak the end was told before the last ones arrived.
        due = [(attempt, each) for attempt, each in due if each.reason != NO_PEAKS or attempt.finished_us <= unsettled_us][:MOST_AT_ONCE]
        self._load()
        if names is None:
            self.shadows.catch_up(self._sequence, lease)
        candidate = self._margin.copy() if due else self._margin
        shadow = self.shadows.candidate() if due else None
        outcomes = [_learned(candidate, each, shadow) for _, each in due]
        if any(outcome.reason == OUT_OF_ORDER for outcome in outcomes):
            candidate, due, outcomes = self._with_late(candidate, due, outcomes, reach=None if names is None else NEAR)
        learned = tuple(self._apply(due, outcomes, candidate, lease, shadow) if due else ())
        self._promote_if_shown(lease)
        return learned

    def _with_late(self, candidate: Margin, due: Due, outcomes: list[Outcome], *, reach: int | None) -> tuple[Margin, Due, list[Outcome]]:
        """With rows that come late learned where they belong; what is too far back is left out, and waits for the next sweep."""
        observations = [each.observation for _, each in due if each.observation is not None]
        again = rebuilt(self._store, self._sequence, observations, memory=self._judge.memory, history=self._margin.history, reach=reach)
        if again is None:
            kept = [(pair, outcome) for pair, outcome in zip(due, outcomes, strict=True) if outcome.reason != OUT_OF_ORDER]
            return candidate, [pair for pair, _ in kept], [outcome for _, outcome in kept]
        names = [each.observation.prediction if each.observation is not None else "" for _, each in due]
        return again.margin, due, [again.outcomes.get(name, outcome) for name, outcome in zip(names, outcomes, strict=True)]

    def _apply(self, due: Due, outcomes: Sequence[Outcome], candidate: Margin, lease: Lease, shadow: Shadow | None) -> list[Learned]:
        """Commits what became of attempts with the margin that they changed. Empty when another replica is the writer, or has moved on:
        what is left is found at the next call."""
        pairs = list(zip(due, outcomes, strict=True))
        rows = [self._observation_row(attempt, each, outcome) for (attempt, each), outcome in pairs]
        new = self.row_of(candidate) if candidate.version != self._margin.version else None
        beside = self.shadows.row(shadow) if new is not None else None
        if not self._store.apply(rows, new, expected_sequence=self._sequence, lease=lease, shadow=beside):
            return []
        if new is not None:
            self._load()
            if self._sequence % THIN_EVERY == 0:
                self._store.thin_calibrations(kept_from_us=self._clock() - self._history_us, lease=lease)
        return [Learned(attempt=attempt, observed=each, outcome=outcome) for (attempt, each), outcome in pairs]

    def _observe(self, attempt: Attempt) -> Observed:
        memory = self._judge.memory
        return observe(
            attempt,
            model_version=memory.version,
            received_at=self._clock() / MICROSECONDS,
            at_length=at_length(memory, attempt.job_body),
        )

    def _due(self, names: Collection[str] | None) -> Sequence[Attempt]:
        now = self._clock()
        return self._store.due(names=names, settled_before_us=now - self._settle_us, quiet_before_us=now - self._quiet_us)

    def _observation_row(self, attempt: Attempt, observed: Observed, outcome: Outcome) -> ObservationRow:
        observation = observed.observation
        return ObservationRow(
            prediction=attempt.prediction,
            job=attempt.job,
            restart=attempt.restart,
            observed_bytes=observed.observed_bytes,
            predicted_bytes=observation.subject.device_bytes if observation is not None else attempt.device_bytes,
            lower_bytes=observation.lower_bytes if observation is not None else 0,
            upper_bytes=observation.upper_bytes if observation is not None else None,
            finished_us=attempt.finished_us,
            applied_us=self._clock(),
            learned=outcome.learned,
            reason=outcome.reason or observed.reason,
            message=outcome.message or observed.message,
            kind=observed.kind if outcome.learned else Kind.DROPPED,
            source=observed.source,
            confidence=observed.confidence,
            origin=observed.origin,
            node=observed.node,
            gpu_uuid=observed.gpu_uuid,
            steps_done=observed.steps_done,
            longest_sequence=observed.longest_sequence,
            body=observation_text(observation) if observation is not None else "",
        )

    def row_of(self, margin: Margin) -> CalibrationRow:
        """A margin as the active version that is made of the present one."""
        groups, now_us = margin.groups(), self._clock()
        kind, note = kind_and_note(self._margin.calibrator, margin.calibrator, before_us=self._made_us, now_us=now_us)
        return CalibrationRow(
            sequence=0,
            parent=self._sequence,
            version=margin.calibrator.epoch,
            state="active",
            created_us=now_us,
            observations=sum(group.observations for group in groups),
            groups=groups_json(groups),
            body=margin.text(),
            kind=kind,
            note=note,
        )

    def _report(self, learned: Learned) -> None:
        outcome, observed = learned.outcome, learned.observed
        self._metrics.series("peakgate_observations_total", outcome=LEARNED if outcome.learned else outcome.reason).add()
        self._accuracy.take(learned.attempt, observed)
        self._log.info(
            "observation",
            prediction=learned.attempt.prediction,
            group=learned.attempt.group,
            observed_bytes=observed.observed_bytes,
            predicted_bytes=learned.attempt.device_bytes,
            kind=observed.kind,
            source=observed.source,
            learned=outcome.learned,
            reason=outcome.reason,
            calibration=self._judge.snapshot.version,
        )


def _learned(margin: Margin, observed: Observed, shadow: Shadow | None) -> Outcome:
    if observed.observation is None:
        return Outcome(learned=False, reason=observed.reason, message=observed.message)
    return margin.learn(observed.observation) if shadow is None else shadow.beside(margin, observed.observation)


def largest_margins(groups: Iterable[GroupSummary]) -> dict[tuple[str, str], float]:
    """(GPU model, framework family) -> the largest margin of its groups: a group's name may hold what submitters write."""
    largest: dict[tuple[str, str], float] = {}
    for group in groups:
        kind = kind_of(group.group)
        largest[kind] = max(group.margin_ratio, largest.get(kind, -math.inf))
    return largest
