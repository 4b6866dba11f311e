"""The store of an embedded service without a database: it keeps nothing and knows nothing."""

# ruff: noqa: ARG002 - a null twin takes what its sibling takes
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from peakgate.server.errors import PeakgateError
from peakgate.server.store.audit_records import AuditWindow, NoAudit
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


class NullStore:
    """Takes predictions and returns nothing."""

    keeps = False
    shared = False

    def ping(self) -> None:
        """It is always there."""

    def close(self) -> None:
        """Nothing is open."""

    def add_predictions(self, rows: Sequence[PredictionRow]) -> None:
        """Forgets them."""

    def prediction(self, name: str) -> StoredPrediction | None:
        """Never known."""
        return None

    def by_request(self, request_id: str) -> StoredPrediction | None:
        """Never known."""
        return None

    def names_of(self, request_ids: Collection[str]) -> Mapping[str, str]:
        """None."""
        return {}

    def request_ids(self) -> Sequence[str]:
        """None."""
        return ()

    def predictions(
        self, *, limit: int, before: tuple[int, str] | None, observed_only: bool, tries_only: bool = False
    ) -> Sequence[StoredPrediction]:
        """None."""
        return ()

    def spend_try(self, row: PredictionRow, reason: str, *, since_us: int, limit: int, complete: Complete) -> Spent:
        """Raises STORE_UNAVAILABLE: what is granted must be kept."""
        raise _keeps_nothing()

    def recent(self, limit: int) -> Sequence[RecentRow]:
        """None."""
        return ()

    def silence(self, *, began_us: int, forgotten_us: int, silent_us: int) -> Silence:
        """Nobody is known."""
        return Silence(nodes=0, silent=0)

    def expire(self, before_us: int) -> int:
        """Nothing to delete."""
        return 0

    def forget(self, *, peaks_before_us: int, events_before_us: int, limit: int) -> dict[str, int]:
        """Nothing to delete."""
        return {}

    def merge_peaks(self, rows: Sequence[PeakRow], phases: Sequence[PhasePeakRow] = ()) -> None:
        """Raises STORE_UNAVAILABLE: what is acknowledged must be kept."""
        raise _keeps_nothing()

    def add_event(self, event: EventRow) -> None:
        """Raises STORE_UNAVAILABLE: what is acknowledged must be kept."""
        raise _keeps_nothing()

    def node_cards(self, *, limit: int, after: CardPlace | None, cluster: str) -> Sequence[NodeCardRow]:
        """None."""
        return ()

    def due(self, *, names: Collection[str] | None, settled_before_us: int, quiet_before_us: int = NO_WAIT_US) -> Sequence[Attempt]:
        """None."""
        return ()

    def newest_ended(self, limit: int) -> Sequence[EndedKey]:
        """None."""
        return ()

    def take_lease(self, holder: str, *, seconds: float, by_force: bool = False) -> int | None:
        """There is nothing to write."""
        return None

    def give_up_lease(self, holder: str) -> None:
        """It never was."""

    def active_calibration(self) -> CalibrationRow | None:
        """None: the prior holds."""
        return None

    def active_sequence(self) -> int:
        """None."""
        return 0

    def apply(
        self,
        rows: Sequence[ObservationRow],
        new: CalibrationRow | None,
        *,
        expected_sequence: int,
        lease: Lease,
        shadow: CalibrationRow | None = None,
    ) -> bool:
        """Nothing is learned."""
        return False

    def calibration(self, version: str) -> CalibrationRow | None:
        """Never known."""
        return None

    def calibration_at(self, sequence: int) -> CalibrationRow | None:
        """Never known."""
        return None

    def told(self, sequence: int, *, after: int) -> Sequence[ToldRow]:
        """Nothing."""
        return ()

    def told_of(self, ranges: Sequence[tuple[int, int]], *, after: int = 0) -> Sequence[ToldRow]:
        """Nothing."""
        return ()

    def earlier_calibration(self, sequence: int) -> CalibrationRow | None:
        """Never known."""
        return None

    def calibrations(self, *, limit: int, before_sequence: int | None, chosen_only: bool = False) -> Sequence[CalibrationRow]:
        """None."""
        return ()

    def promote(self, sequence: int, *, note: str, lease: Lease) -> Switched | None:
        """Nothing to promote."""
        return None

    def thin_calibrations(self, *, kept_from_us: int, lease: Lease) -> int:
        """Nothing to delete."""
        return 0

    def kept_out(self, *, limit: int, offset: int, group: str = "", reason: str = "") -> Sequence[KeptOut]:
        """None."""
        return ()

    def audit(self, window: AuditWindow) -> AbstractContextManager[NoAudit]:
        """Nothing ended."""
        return nullcontext(NoAudit())

    def past_attempts(self, *, since_us: int, after: Place | None, limit: int) -> Sequence[PastRow]:
        """None."""
        return ()

    def release(self, row: ObservationRow, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
        """Nothing is learned."""
        return False

    def shadow(self) -> CalibrationRow | None:
        """None."""
        return None

    def shadow_place(self) -> int:
        """None."""
        return 0

    def start_shadow(self, new: CalibrationRow, *, base: int, expected_sequence: int, lease: Lease) -> bool:
        """Nothing is learned."""
        return False

    def keep_shadow(self, shadow: CalibrationRow, *, expected_sequence: int, lease: Lease) -> None:
        """Forgets it."""

    def end_shadow(self, *, lease: Lease) -> int:
        """None."""
        return 0

    def promote_shadow(self, shadow: int, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
        """Nothing to promote."""
        return False


def _keeps_nothing() -> PeakgateError:
    return PeakgateError(
        "STORE_UNAVAILABLE", "this service has no database, so it takes no observations and grants no tries", hint="name one with --db"
    )
