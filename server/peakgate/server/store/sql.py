"""The store on SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, select

from peakgate.server.store import (
    attempts,
    calibrations,
    ended,
    events,
    history,
    leases,
    lines,
    merging,
    node_cards,
    observations,
    past,
    predictions,
    releases,
    retention,
    shadows,
    silence,
    told,
    tries,
)
from peakgate.server.store.audit_records import AuditWindow
from peakgate.server.store.audits import SqlAudit
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
from peakgate.server.store.session import Sessions


class SqlStore:
    """A store on SQLite or PostgreSQL whose tables exist."""

    keeps = True

    def __init__(self, engine: Engine, *, shared: bool = False) -> None:
        self._sessions = Sessions(engine)
        self._is_alone = engine.dialect.name == "sqlite"  # while it writes
        self.shared = shared or not self._is_alone

    def ping(self) -> None:
        """Raises when the database is away."""
        with self._sessions.reading() as connection:
            connection.execute(select(1))

    def close(self) -> None:
        """Ends all connections."""
        self._sessions.close()

    def add_predictions(self, rows: Sequence[PredictionRow]) -> None:
        """Stores predictions; repeated ones change nothing."""
        with self._sessions.writing() as connection:
            predictions.add(connection, rows)

    def prediction(self, name: str) -> StoredPrediction | None:
        """One prediction."""
        with self._sessions.reading() as connection:
            found = predictions.by_name(connection, name)
            return _whole(connection, [found])[0] if found is not None else None

    def by_request(self, request_id: str) -> StoredPrediction | None:
        """The prediction that answered a request id."""
        with self._sessions.reading() as connection:
            return predictions.by_request(connection, request_id)

    def names_of(self, request_ids: Collection[str]) -> Mapping[str, str]:
        """The names of the predictions that answered request ids, by request id; without those that none did."""
        with self._sessions.reading() as connection:
            return predictions.names_of(connection, request_ids)

    def request_ids(self) -> Sequence[str]:
        """Every request id that was answered."""
        with self._sessions.reading() as connection:
            return predictions.request_ids(connection)

    def predictions(
        self, *, limit: int, before: tuple[int, str] | None, observed_only: bool, tries_only: bool = False
    ) -> Sequence[StoredPrediction]:
        """Predictions, newest first."""
        with self._sessions.reading() as connection:
            found = predictions.page(connection, limit=limit, before=before, observed_only=observed_only, tries_only=tries_only)
            return _whole(connection, found)

    def spend_try(self, row: PredictionRow, reason: str, *, since_us: int, limit: int, complete: Complete) -> Spent:
        """Spends one of the tries that the user has had since a moment, and stores the prediction with it, in one transaction."""
        with self._sessions.writing() as connection:
            return tries.spend(connection, row, reason, since_us=since_us, limit=limit, complete=complete)

    def recent(self, limit: int) -> Sequence[RecentRow]:
        """What the newest predictions were of, the newest first."""
        with self._sessions.reading() as connection:
            return predictions.recent(connection, limit)

    def silence(self, *, began_us: int, forgotten_us: int, silent_us: int) -> Silence:
        """How many nodes are known by what began since a moment and was not forgotten, and how many of them owe news of what runs."""
        with self._sessions.reading() as connection:
            return silence.silence(connection, began_us=began_us, forgotten_us=forgotten_us, silent_us=silent_us)

    def expire(self, before_us: int) -> int:
        """Deletes unused predictions from before a moment; returns how many."""
        with self._sessions.writing() as connection:
            ended.forget(connection, before_us)
            return predictions.expire(connection, before_us)

    def forget(self, *, peaks_before_us: int, events_before_us: int, limit: int) -> dict[str, int]:
        """Deletes at most `limit` old rows of each table that have been made use of; returns how many by table."""
        with self._sessions.writing() as connection:
            forgotten_peaks = retention.forget_peaks(connection, peaks_before_us, limit=limit)
            return {"peaks": forgotten_peaks, "job_events": retention.forget_events(connection, events_before_us, limit=limit)}

    def merge_peaks(self, rows: Sequence[PeakRow], phases: Sequence[PhasePeakRow] = ()) -> None:
        """Merges peaks by maximum; committed when it returns."""
        with self._sessions.writing() as connection:
            merging.merge(connection, rows)
            merging.merge_phases(connection, phases)

    def add_event(self, event: EventRow) -> None:
        """Stores a job event; committed when it returns."""
        with self._sessions.writing() as connection:
            events.add(connection, event)

    def node_cards(self, *, limit: int, after: CardPlace | None, cluster: str) -> Sequence[NodeCardRow]:
        """The kinds of card that were seen, by cluster, node, name and memory. `cluster`: only this one; empty: all."""
        with self._sessions.reading() as connection:
            return node_cards.page(connection, limit=limit, after=after, cluster=cluster)

    def due(self, *, names: Collection[str] | None, settled_before_us: int, quiet_before_us: int = NO_WAIT_US) -> Sequence[Attempt]:
        """Attempts whose end was seen and that were not learned from, oldest end first."""
        with self._sessions.reading() as connection:
            return attempts.due(connection, names=names, settled_before_us=settled_before_us, quiet_before_us=quiet_before_us)

    def newest_ended(self, limit: int) -> Sequence[EndedKey]:
        """Attempts on the list of ended ones, those whose end was told last."""
        with self._sessions.reading() as connection:
            return ended.newest(connection, limit)

    def take_lease(self, holder: str, *, seconds: float, by_force: bool = False) -> int | None:
        """Becomes, or stays, the calibration's one writer. Returns the fence; None while another one is."""
        if self._is_alone:
            return leases.NO_FENCE
        with self._sessions.writing() as connection:
            return leases.take(connection, holder, seconds=seconds, by_force=by_force)

    def give_up_lease(self, holder: str) -> None:
        """Is the writer no longer, if it was."""
        if not self._is_alone:
            with self._sessions.writing() as connection:
                leases.give_up(connection, holder)

    def active_calibration(self) -> CalibrationRow | None:
        """The active version; None before anything was learned."""
        with self._sessions.reading() as connection:
            return calibrations.active(connection)

    def active_sequence(self) -> int:
        """The place of the active version; 0 before anything was learned."""
        with self._sessions.reading() as connection:
            return calibrations.active_sequence(connection)

    def apply(
        self,
        rows: Sequence[ObservationRow],
        new: CalibrationRow | None,
        *,
        expected_sequence: int,
        lease: Lease,
        shadow: CalibrationRow | None = None,
    ) -> bool:
        """Marks observations as applied and activates `new`, in one transaction. False: somebody else is the writer, or was first."""
        try:
            with self._sessions.writing() as connection:
                applied = calibrations.apply(connection, rows, new, expected_sequence=expected_sequence, lease=lease)
                if applied and shadow is not None:
                    shadows.keep(connection, shadow, known=calibrations.active_sequence(connection))
                return applied
        except calibrations.AppliedError:
            return False

    def calibration(self, version: str) -> CalibrationRow | None:
        """A version by its name."""
        with self._sessions.reading() as connection:
            return calibrations.by_version(connection, version)

    def calibration_at(self, sequence: int) -> CalibrationRow | None:
        """A version by its place; None when it is not kept any more."""
        with self._sessions.reading() as connection:
            return calibrations.at(connection, sequence)

    def told(self, sequence: int, *, after: int) -> Sequence[ToldRow]:
        """What the line of the active version `sequence` was told since version `after` (0: ever), in no order."""
        with self._sessions.reading() as connection:
            return told.of_line(connection, sequence, after=after)

    def told_of(self, ranges: Sequence[lines.Range], *, after: int = 0) -> Sequence[ToldRow]:
        """What the versions of these ranges were told after the version `after`, in no order."""
        with self._sessions.reading() as connection:
            return told.of_ranges(connection, ranges, after=after)

    def earlier_calibration(self, sequence: int) -> CalibrationRow | None:
        """The version that an operator goes back to from another."""
        with self._sessions.reading() as connection:
            return history.earlier(connection, sequence)

    def calibrations(self, *, limit: int, before_sequence: int | None, chosen_only: bool = False) -> Sequence[CalibrationRow]:
        """Versions without their bodies, newest first. `chosen_only`: those that are kept for a reason, or in use."""
        with self._sessions.reading() as connection:
            return calibrations.page(connection, limit=limit, before_sequence=before_sequence, chosen_only=chosen_only)

    def promote(self, sequence: int, *, note: str, lease: Lease) -> Switched | None:
        """Makes a stored version the active one. None: somebody else is the writer."""
        with self._sessions.writing() as connection:
            return history.promote(connection, sequence, note=note, lease=lease)

    def thin_calibrations(self, *, kept_from_us: int, lease: Lease) -> int:
        """Deletes versions that nobody goes back to; returns how many."""
        with self._sessions.writing() as connection:
            return history.thin(connection, kept_from_us=kept_from_us, lease=lease)

    def kept_out(self, *, limit: int, offset: int, group: str = "", reason: str = "") -> Sequence[KeptOut]:
        """Observations that were kept out, newest first: of a group, with a reason word, where one is named."""
        with self._sessions.reading() as connection:
            return calibrations.kept_out(connection, limit=limit, offset=offset, group=group, reason=reason)

    def release(self, row: ObservationRow, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
        """Activates `new`, which has learned an observation that was kept out. False: somebody else was first."""
        try:
            with self._sessions.writing() as connection:
                return releases.release(connection, row, new, expected_sequence=expected_sequence, lease=lease)
        except calibrations.AppliedError:
            return False

    def shadow(self) -> CalibrationRow | None:
        """The version that learns beside the active one."""
        with self._sessions.reading() as connection:
            return shadows.current(connection)

    def shadow_place(self) -> int:
        """Its sequence; 0: there is none."""
        with self._sessions.reading() as connection:
            return shadows.place(connection)

    def start_shadow(self, new: CalibrationRow, *, base: int, expected_sequence: int, lease: Lease) -> bool:
        """Stores a shadow that was made from version `base` (0: from everything). False: there is one, or somebody else was first."""
        with self._sessions.writing() as connection:
            return shadows.start(connection, new, base=base, expected_sequence=expected_sequence, lease=lease)

    def keep_shadow(self, shadow: CalibrationRow, *, expected_sequence: int, lease: Lease) -> None:
        """Stores a shadow that was made again, while the same version is active."""
        with self._sessions.writing() as connection:
            shadows.rebuilt(connection, shadow, expected_sequence=expected_sequence, lease=lease)

    def end_shadow(self, *, lease: Lease) -> int:
        """Ends the shadow. Returns its sequence; 0: there was none."""
        with self._sessions.writing() as connection:
            return shadows.end(connection) if leases.holds(connection, lease) else 0

    def promote_shadow(self, shadow: int, new: CalibrationRow, *, expected_sequence: int, lease: Lease) -> bool:
        """Makes of a shadow the active version `new`. False: it has ended, or somebody else was first."""
        with self._sessions.writing() as connection:
            return shadows.promote(connection, shadow, new, expected_sequence=expected_sequence, lease=lease)

    def past_attempts(self, *, since_us: int, after: Place | None, limit: int) -> Sequence[PastRow]:
        """Ended attempts with their jobs from `since_us` on, in the order of their ends, behind a place."""
        with self._sessions.reading() as connection:
            return past.page(connection, since_us=since_us, after=after, limit=limit)

    @contextmanager
    def audit(self, window: AuditWindow) -> Iterator[SqlAudit]:
        """What ended in a window, as it stands at one moment."""
        with self._sessions.reading() as connection:
            yield SqlAudit(connection, window)


def _whole(connection: Connection, found: Sequence[StoredPrediction]) -> list[StoredPrediction]:
    return tries.with_tries(connection, observations.with_observations(connection, found))


def open_store(url: str, *, shared: bool = False) -> SqlStore:
    """The store at `url`, its tables brought up to date. `shared`: other processes write to the same file.

    Raises STORE_UNAVAILABLE with what to do.
    """
    from peakgate.server.store.engine import open_engine
    from peakgate.server.store.migrate import upgrade_engine

    engine = open_engine(url)
    upgrade_engine(engine)
    return SqlStore(engine, shared=shared)
