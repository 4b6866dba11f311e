"""What the service asks of a store. Every method may raise PeakgateError STORE_UNAVAILABLE."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from peakgate.server.store.audit_records import Audit, AuditWindow
from peakgate.server.store.records import (
    NO_WAIT_US,
    Attempt,
    CalibrationRow,
    CardPlace,
    Complete,
    EndedKey,
    EventRow,
    KeptOut,
    Lease,
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
    Switched,
    ToldRow,
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

    def names_of(self, request_ids: Collection[str]) -> Mapping[str, str]:
        """The names of the predictions that answered request ids, by request id; without those that none did."""

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

    def node_cards(self, *, limit: int, after: CardPlace | None, cluster: str) -> Sequence[NodeCardRow]:
        """The kinds of card that were seen, by cluster, node, name and memory. `cluster`: only this one; empty: all."""

    def due(self, *, names: Collection[str] | None, settled_before_us: int, quiet_before_us: int = NO_WAIT_US) -> Sequence[Attempt]:
        """Attempts whose end was seen and that were not learned from, oldest end first."""

    def newest_ended(self, limit: int) -> Sequence[EndedKey]:
        """Attempts on the list of ended ones, those whose end was told last."""

    def take_lease(self, holder: str, *, seconds: float, by_force: bool = False) -> int | None:
        """Becomes, or stays, the calibration's one writer. Returns the fence; None while another one is."""

    def give_up_lease(self, holder: str) -> None:
        """Is the writer no longer, if it was."""

    def active_calibration(self) -> CalibrationRow | None:
        """The active version; None before anything was learned."""

    def active_sequence(self) -> int:
        """The place of the active version; 0 before anything was learned."""

    def apply(
        self,
        rows: Sequence[ObservationRow],
        new: CalibrationRow | None,
        *,
        expected_sequence: int,
        lease: Lease,
        shadow: CalibrationRow | None = None,
    ) -> bool:
        """Marks observations as applied and activates `new`, in one transaction, with what the shadow has become beside it.

        False: somebody else is the writer, or was first.
        """

    def calibration(self, version: str) -> CalibrationRow | None:
        """A version by its name."""

    def calibration_at(self, sequence: int) -> CalibrationRow | None:
        """A version by its place; None when it is not kept any more."""

    def told(self, sequence: int, *, after: int) -> Sequence[ToldRow]:
        """What the line of the active version `sequence` was told since version `after` (0: ever), in no order."""

    def told_of(self, ranges: Sequence[tuple[int, int]], *, after: int = 0) -> Sequence[ToldRow]:
        """What the versions of these ranges of sequences were told after the version `after`, in no order."""

    def earlier_calibration(self, sequence: int) -> CalibrationRow | None:
        """The version that an operator goes back to from another."""

    def calibrations(self, *, limit: int, before_sequence: int | None, chosen_only: bool = False) -> Sequence[CalibrationRow]:
        """Versions without their bodies, newest first. `chosen_only`: those that are kept for a reason, or in use."""

    def promote(self, sequence: int, *, note: str, lease: Lease) -> Switched | None:
        """Makes a stored version the active one. None: somebody else is the writer."""

    def thin_calibrations(self, *, kept_from_us: int, lease: Lease) -> int:
        """Deletes versions that nobody goes back to; returns how many."""

    def kept_out(self, *, limit: int, offset: int, group: str = "", reason: str = "") -> Sequence[KeptOut]:
        """Observations that were kept out, newest first: of a group, with a reason word, where one is named."""

    def audit(self, window: AuditWindow) -> AbstractContextManager[Audit]:
        """What ended in a window, as it stands at one moment."""

    def past_attempts(self, *, since_us: int, after: Place | None, limit: int) -> Sequence[PastRow]:
        """Ended attempts with their jobs from `since_us` on, in the order of their ends, behind a place."""

    def release(self, row: ObservationRow, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
        """Activates `new`, which has learned an observation that was kept out. False: somebody else was first."""

    def shadow(self) -> CalibrationRow | None:
        """The version that learns beside the active one."""

    def shadow_place(self) -> int:
        """Its sequence; 0: there is none."""

    def start_shadow(self, new: CalibrationRow, *, base: int, expected_sequence: int, lease: Lease) -> bool:
        """Stores a shadow that was made from version `base` (0: from everything). False: there is one, or somebody else was first."""

    def keep_shadow(self, shadow: CalibrationRow, *, expected_sequence: int, lease: Lease) -> None:
        """Stores a shadow that was made again, while the same version is active."""

    def end_shadow(self, *, lease: Lease) -> int:
        """Ends the shadow. Returns its sequence; 0: there was none."""

    def promote_shadow(self, shadow: int, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
        """Makes of a shadow the active version `new`. False: it has ended, or somebody else was first."""
