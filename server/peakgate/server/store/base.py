"""What the service asks of a store. Every method may raise PeakgateError STORE_UNAVAILABLE."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from peakgate.server.store.audit_records import Audit, AuditWindow
from peakgate.server.store.records import (
    NO_WAIT_US,
    Attempt,
    CalibrationRow,
    Complete,
    EventRow,
    NodeCardRow,
    ObservationRow,
    PastRow,
    PeakRow,
    PhasePeakRow,
    Place,
    PredictionRow,
    RecentRow,
    Silence,
    Spent,
    StoredPrediction,
)


class Store(Protocol):
    """A store of predictions, peaks and the calibration. Methods block; the service calls them off the event loop."""

    @property
    def keeps(self) -> bool:
        """False for the null twin."""

    @property
    def shared(self) -> bool:
        """Whether other processes may write predictions with request ids that this one has not seen."""

    def ping(self) -> None:
        """Raises when the store is away."""

    def close(self) -> None:
        """Ends all connections."""

    def add_predictions(self, rows: Sequence[PredictionRow]) -> None:
        """Stores predictions; repeated ones change nothing."""

    def prediction(self, name: str) -> StoredPrediction | None:
        """One prediction."""

    def by_request(self, request_id: str) -> StoredPrediction | None:
        """The prediction that answered a request id."""

    def request_ids(self) -> Sequence[str]:
        """Every request id that was answered."""

    def predictions(
        self, *, limit: int, before: tuple[int, str] | None, observed_only: bool, tries_only: bool = False
    ) -> Sequence[StoredPrediction]:
        """Predictions, newest first."""

    def spend_try(self, row: PredictionRow, reason: str, *, since_us: int, limit: int, complete: Complete) -> Spent:
        """Spends one of the tries that the user has had since a moment, and stores the prediction with it, in one transaction."""

    def recent(self, limit: int) -> Sequence[RecentRow]:
        """What the newest predictions were of, the newest first."""

    def silence(self, *, began_us: int, forgotten_us: int, silent_us: int) -> Silence:
        """How many nodes are known by what began since a moment and was not forgotten, and how many of them owe news of what runs."""

    def expire(self, before_us: int) -> int:
        """Deletes unused predictions from before a moment; returns how many."""

    def forget(self, *, peaks_before_us: int, events_before_us: int, limit: int) -> dict[str, int]:
        """Deletes at most `limit` old rows of each table that have been made use of; returns how many by table."""

    def merge_peaks(self, rows: Sequence[PeakRow], phases: Sequence[PhasePeakRow] = ()) -> None:
        """Merges peaks by maximum; committed when it returns."""

    def add_event(self, event: EventRow) -> None:
        """Stores a job event; committed when it returns."""

    def node_cards(self, *, limit: int, after: tuple[str, str, str, int] | None, cluster: str) -> Sequence[NodeCardRow]:
        """The kinds of card that were seen, by cluster, node, name and memory. `cluster`: only this one; empty: all."""

    def due(self, *, names: Collection[str] | None, settled_before_us: int, quiet_before_us: int = NO_WAIT_US) -> Sequence[Attempt]:
        """Attempts whose end was seen and that were not learned from, oldest end first."""

    def active_calibration(self) -> CalibrationRow | None:
        """The active version; None before anything was learned."""

    def apply(self, rows: Sequence[ObservationRow], new: CalibrationRow | None, *, expected_sequence: int) -> bool:
        """Marks observations as applied and activates `new`, in one transaction. False: somebody else was first."""

    def calibration(self, version: str) -> CalibrationRow | None:
        """A version by its name."""

    def calibration_at(self, sequence: int) -> CalibrationRow | None:
        """A version by its place; None when it is not kept any more."""

    def taken_in(self, after: int, *, model_version: str) -> Sequence[str]:
        """What the calibration was told from version `after` on (0: from the first), as texts in no order."""

    def calibration_before(self, sequence: int) -> CalibrationRow | None:
        """The version that was made before another."""

    def calibrations(self, *, limit: int, before_sequence: int | None) -> Sequence[CalibrationRow]:
        """Versions, newest first."""

    def promote(self, sequence: int) -> None:
        """Makes a stored version the active one."""

    def kept_out(self, *, limit: int, offset: int) -> Sequence[ObservationRow]:
        """Observations that were kept out, newest first."""

    def audit(self, window: AuditWindow) -> AbstractContextManager[Audit]:
        """What ended in a window, as it stands at one moment."""

    def past_attempts(self, *, since_us: int, after: Place | None, limit: int) -> Sequence[PastRow]:
        """Ended attempts with their jobs from `since_us` on, in the order of their ends, behind a place."""
