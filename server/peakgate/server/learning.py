"""The margin's single writer: ended jobs in, a new calibration out, each applied once and in the order of their ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from peakgate.calibration import Calibrator, Outcome
from peakgate.calibration.calibrator import OUT_OF_ORDER
from peakgate.server.accuracy import Accuracy
from peakgate.server.classing import Kind
from peakgate.server.clock import MICROSECONDS, Clock
from peakgate.server.groups import GroupSummary, groups_json
from peakgate.server.judge import Judge
from peakgate.server.kinds import kind_of
from peakgate.server.lengths import at_length
from peakgate.server.logs import Logger
from peakgate.server.margin import Margin, margin_from
from peakgate.server.metrics import Metrics
from peakgate.server.observe import NO_PEAKS, Observed, observe
from peakgate.server.rebuild import NEAR, rebuilt
from peakgate.server.store.base import Store
from peakgate.server.store.records import Attempt, CalibrationRow, ObservationRow
from peakgate.server.subjects import observation_text


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


class Learner:
    """Learns from ended jobs and swaps the judge's snapshot.

    Nothing is lost by a crash: an ended job that was not applied is found again, because the peaks and the events are in the
    store before they are acknowledged, and the mark of an applied one is committed together with the state it changed.
    """

    def __init__(
        self, judge: Judge, store: Store, *, clock: Clock, settle_seconds: float, quiet_seconds: float, metrics: Metrics, log: Logger
    ) -> None:
        self._judge = judge
        self._store = store
        self._clock = clock
        self._settle_us = int(settle_seconds * MICROSECONDS)
        self._quiet_us = int(quiet_seconds * MICROSECONDS)
        self._metrics = metrics
        self._log = log
        self._accuracy = Accuracy(metrics=metrics)
        self._with_margin: set[tuple[str, str]] = set()
        self._lock = asyncio.Lock()
        self._sequence = self._shown = 0
        self._margin = Margin(Calibrator(epoch=judge.memory.version))
        self._groups = self._margin.groups()

    async def load(self) -> None:
        """Takes the active calibration of the store, when another is active than the one in memory. Raises STORE_UNAVAILABLE."""
        async with self._lock:
            await asyncio.to_thread(self._load)
            self._show()

    async def learn(self, names: Collection[str] | None = None) -> tuple[Learned, ...]:
        """Applies every ended job that was not applied yet (`names`: only of these predictions). Raises STORE_UNAVAILABLE."""
        async with self._lock:
            try:
                learned = await asyncio.to_thread(self._learn, names)
            finally:
                self._show()
        for each in learned:
            self._report(each)
        return learned

    def _show(self) -> None:
        """Answers rest on what is in memory, also where that was read because another replica was first to learn."""
        if self._shown != self._sequence:
            self._shown = self._sequence
            self._swap()

    def _swap(self) -> None:
        snapshot = self._margin.calibrator.snapshot()
        self._judge.swap(snapshot)
        self._metrics.series("peakgate_calibration_observations").set(sum(group.observations for group in self._groups))
        self._metrics.series("peakgate_calibration_alarms").set(sum(node.alarmed for node in snapshot.nodes.values()))
        margins = largest_margins(self._groups)
        for kind in self._with_margin - margins.keys():
            margins[kind] = math.nan  # a calibration that was rolled back may know fewer
        self._with_margin |= margins.keys()
        for (gpu, framework), ratio in margins.items():
            self._metrics.series("peakgate_calibration_margin_ratio", gpu_model=gpu, framework=framework).set(ratio)

    def _load(self) -> None:
        row = self._store.active_calibration()
        if row is None or row.sequence == self._sequence:
            return
        self._margin = self._read(row.body)
        self._margin.calibrator.snapshot()  # made here, off the event loop, and so are the groups
        self._groups = self._margin.groups()
        self._sequence = row.sequence

    def _read(self, body: str) -> Margin:
        """The stored margin; one that this version cannot read is made again from what was observed, as far as that was kept."""
        epoch = self._judge.memory.version
        try:
            margin = margin_from(body)
        except ValueError as error:
            self._log.warning("calibration cannot be read", cause=str(error))
            again = rebuilt(self._store, 0, (), epoch=epoch)
            return again.margin if again is not None else Margin(Calibrator(epoch=epoch))
        if margin.calibrator.epoch == epoch:
            return margin
        self._log.warning("calibration of another memory model", found=margin.calibrator.epoch, want=epoch)
        return Margin(Calibrator(epoch=epoch))

    def _learn(self, names: Collection[str] | None) -> tuple[Learned, ...]:
        """One new version takes in all that is due."""
        due = [(attempt, self._observe(attempt)) for attempt in self._due(names)]
        unsettled_us = self._clock() - self._settle_us
        # Without a peak the end was told before the last ones arrived.
        due = [(attempt, each) for attempt, each in due if each.reason != NO_PEAKS or attempt.finished_us <= unsettled_us][:MOST_AT_ONCE]
        self._load()
        candidate = self._margin.copy() if due else self._margin
        outcomes = [_learned(candidate, each) for _, each in due]
        if any(outcome.reason == OUT_OF_ORDER for outcome in outcomes):
            candidate, due, outcomes = self._with_late(candidate, due, outcomes, reach=None if names is None else NEAR)
        return tuple(self._apply(due, outcomes, candidate) if due else ())

    def _with_late(self, candidate: Margin, due: Due, outcomes: list[Outcome], *, reach: int | None) -> tuple[Margin, Due, list[Outcome]]:
        """With rows that come late learned where they belong; what is too far back is left out, and waits for the next sweep."""
        observations = [each.observation for _, each in due if each.observation is not None]
        again = rebuilt(self._store, self._sequence, observations, epoch=self._judge.memory.version, reach=reach)
        if again is None:
            kept = [(pair, outcome) for pair, outcome in zip(due, outcomes, strict=True) if outcome.reason != OUT_OF_ORDER]
            return candidate, [pair for pair, _ in kept], [outcome for _, outcome in kept]
        names = [each.observation.prediction if each.observation is not None else "" for _, each in due]
        return again.margin, due, [again.outcomes.get(name, outcome) for name, outcome in zip(names, outcomes, strict=True)]

    def _apply(self, due: Due, outcomes: Sequence[Outcome], candidate: Margin) -> list[Learned]:
        """Commits what became of attempts with the margin that they changed. Empty when another replica was first, or has moved on: what is
        left is found at the next call."""
        pairs = list(zip(due, outcomes, strict=True))
        rows = [self._observation_row(attempt, each, outcome) for (attempt, each), outcome in pairs]
        new = self._calibration_row(candidate) if candidate.version != self._margin.version else None
        if not self._store.apply(rows, new, expected_sequence=self._sequence):
            return []
        if new is not None:
            self._load()
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

    def _calibration_row(self, margin: Margin) -> CalibrationRow:
        groups = margin.groups()
        return CalibrationRow(
            sequence=0,
            parent=self._sequence,
            version=margin.version,
            state="active",
            created_us=self._clock(),
            observations=sum(group.observations for group in groups),
            groups=groups_json(groups),
            body=margin.text(),
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


def _learned(margin: Margin, observed: Observed) -> Outcome:
    if observed.observation is None:
        return Outcome(learned=False, reason=observed.reason, message=observed.message)
    return margin.learn(observed.observation)


def largest_margins(groups: Iterable[GroupSummary]) -> dict[tuple[str, str], float]:
    """(GPU model, framework family) -> the largest margin of its groups: a group's name may hold what submitters write."""
    largest: dict[tuple[str, str], float] = {}
    for group in groups:
        kind = kind_of(group.group)
        largest[kind] = max(group.margin_ratio, largest.get(kind, -math.inf))
    return largest
