"""The margin's single writer: ended jobs in, a new calibration out, each applied once and in the order of their ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from peakgate.calibration import Calibrator, Observation, Outcome, Snapshot
from peakgate.server.classing import Kind
from peakgate.server.clock import MICROSECONDS, Clock
from peakgate.server.errors import PeakgateError
from peakgate.server.judge import Judge
from peakgate.server.lengths import at_length
from peakgate.server.logs import Logger
from peakgate.server.metrics import Metrics
from peakgate.server.observe import NO_PEAKS, Observed, observe
from peakgate.server.store.base import Store
from peakgate.server.store.records import Attempt, CalibrationRow, ObservationRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One applied attempt."""

    attempt: Attempt
    observed_bytes: int
    outcome: Outcome
    kind: Kind
    source: str


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
        self._lock = asyncio.Lock()
        self._sequence = 0
        self._calibrator = Calibrator(epoch=judge.memory.version)

    async def load(self) -> None:
        """Takes the active calibration of the store, when another is active than the one in memory. Raises STORE_UNAVAILABLE."""
        async with self._lock:
            if await asyncio.to_thread(self._load):
                self._swap()

    async def learn(self, names: Collection[str] | None = None) -> tuple[Learned, ...]:
        """Applies every ended job that was not applied yet (`names`: only of these predictions). Raises STORE_UNAVAILABLE."""
        async with self._lock:
            learned = await asyncio.to_thread(self._learn, names)
            if learned:
                self._swap()
        for each in learned:
            self._report(each)
        return learned

    def _swap(self) -> None:
        snapshot = self._calibrator.snapshot()
        self._judge.swap(snapshot)
        groups = snapshot.groups()
        self._metrics.series("peakgate_calibration_observations").set(sum(group.observations for group in groups))
        for group in groups:
            self._metrics.series("peakgate_calibration_margin_ratio", group=group.group).set(group.margin_ratio)

    def _load(self) -> bool:
        row = self._store.active_calibration()
        if row is None or row.sequence == self._sequence:
            return False
        self._sequence = row.sequence
        calibrator = read_calibrator(row.body)
        if calibrator.epoch != self._judge.memory.version:
            self._log.warning("calibration of another memory model", found=calibrator.epoch, want=self._judge.memory.version)
            calibrator = Calibrator(epoch=self._judge.memory.version)
        self._calibrator = calibrator
        self._calibrator.snapshot()  # fitted here, off the event loop
        return True

    def _learn(self, names: Collection[str] | None) -> tuple[Learned, ...]:
        learned: list[Learned] = []
        for attempt in self._due(names):
            observed = self._observe(attempt)
            if observed.reason == NO_PEAKS and attempt.finished_us > self._clock() - self._settle_us:
                continue  # the end was told before the last peaks arrived
            self._load()
            outcome, candidate = self._try(observed)
            row = self._observation_row(attempt, observed, outcome)
            new = self._calibration_row(candidate) if outcome.learned else None
            if not self._store.apply(row, new, expected_sequence=self._sequence):
                continue  # another replica was first, or has moved on: what is left is found at the next call
            if outcome.learned:
                self._load()
            learned.append(
                Learned(
                    attempt=attempt,
                    observed_bytes=observed.observed_bytes,
                    outcome=outcome,
                    kind=observed.kind,
                    source=observed.source,
                )
            )
        return tuple(learned)

    def _observe(self, attempt: Attempt) -> Observed:
        memory = self._judge.memory
        return observe(attempt, model_version=memory.version, at_length=at_length(memory, attempt.job_body))

    def _due(self, names: Collection[str] | None) -> Sequence[Attempt]:
        now = self._clock()
        return self._store.due(names=names, settled_before_us=now - self._settle_us, quiet_before_us=now - self._quiet_us)

    def _try(self, observed: Observed) -> tuple[Outcome, Calibrator]:
        """Learns on a copy: the one in use changes only after the commit."""
        candidate = Calibrator.from_state(self._calibrator.state())
        if observed.observation is None:
            return Outcome(learned=False, reason=observed.reason, message=observed.message), candidate
        return candidate.learn(observed.observation), candidate

    def _observation_row(self, attempt: Attempt, observed: Observed, outcome: Outcome) -> ObservationRow:
        observation: Observation | None = observed.observation
        return ObservationRow(
            prediction=attempt.prediction,
            job=attempt.job,
            restart=attempt.restart,
            observed_bytes=observed.observed_bytes,
            predicted_bytes=observation.device_bytes if observation is not None else attempt.device_bytes,
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
        )

    def _calibration_row(self, calibrator: Calibrator) -> CalibrationRow:
        snapshot = calibrator.snapshot()
        return CalibrationRow(
            sequence=0,
            version=snapshot.version,
            state="active",
            created_us=self._clock(),
            observations=sum(group.observations for group in snapshot.groups()),
            groups=groups_json(snapshot),
            body=json.dumps(calibrator.state(), allow_nan=False),
        )

    def _report(self, learned: Learned) -> None:
        outcome = learned.outcome
        self._metrics.series("peakgate_observations_total", outcome="LEARNED" if outcome.learned else outcome.reason).add()
        if learned.attempt.device_bytes and learned.observed_bytes:
            ratio = learned.observed_bytes / learned.attempt.device_bytes
            self._metrics.series("peakgate_observed_over_predicted_ratio").observe(ratio)
        self._log.info(
            "observation",
            prediction=learned.attempt.prediction,
            group=learned.attempt.group,
            observed_bytes=learned.observed_bytes,
            predicted_bytes=learned.attempt.device_bytes,
            kind=learned.kind,
            source=learned.source,
            learned=outcome.learned,
            reason=outcome.reason,
            calibration=self._judge.snapshot.version,
        )


def read_calibrator(body: str) -> Calibrator:
    """The calibrator that was stored. Raises STORE_UNAVAILABLE for a state that this version cannot read."""
    try:
        return Calibrator.from_state(json.loads(body))
    except ValueError as error:
        raise PeakgateError("STORE_UNAVAILABLE", f"the stored calibration cannot be used: {error}") from error


def groups_json(snapshot: Snapshot) -> str:
    """The groups of a snapshot for the list of versions."""
    return json.dumps([asdict(group) for group in snapshot.groups()])
