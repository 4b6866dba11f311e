"""The store on SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, select

from peakgate.server.store import (
    attempts,
    calibrations,
    ended,
    events,
    merging,
    node_cards,
    observations,
    past,
    predictions,
    retention,
    silence,
    tries,
)
from peakgate.server.store.audit_records import AuditWindow
from peakgate.server.store.audits import SqlAudit
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
from peakgate.server.store.session import Sessions


class SqlStore:
    """A store on SQLite or PostgreSQL whose tables exist."""

    keeps = True

    def __init__(self, engine: Engine, *, shared: bool = False) -> None:
        self._sessions = Sessions(engine)
        self.shared = shared or engine.dialect.name != "sqlite"

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

    def node_cards(self, *, limit: int, after: tuple[str, str, str, int] | None, cluster: str) -> Sequence[NodeCardRow]:
        """The kinds of card that were seen, by cluster, node, name and memory. `cluster`: only this one; empty: all."""
        with self._sessions.reading() as connection:
            return node_cards.page(connection, limit=limit, after=after, cluster=cluster)

    def due(self, *, names: Collection[str] | None, settled_before_us: int, quiet_before_us: int = NO_WAIT_US) -> Sequence[Attempt]:
        """Attempts whose end was seen and that were not learned from, oldest end first."""
        with self._sessions.reading() as connection:
            return attempts.due(connection, names=names, settled_before_us=settled_before_us, quiet_before_us=quiet_before_us)

    def active_calibration(self) -> CalibrationRow | None:
        """The active version; None before anything was learned."""
        with self._sessions.reading() as connection:
            return calibrations.active(connection)

    def apply(self, rows: Sequence[ObservationRow], new: CalibrationRow | None, *, expected_sequence: int) -> bool:
        """Marks observations as applied and activates `new`, in one transaction. False: somebody else was first."""
        try:
            with self._sessions.writing() as connection:
                return calibrations.apply(connection, rows, new, expected_sequence=expected_sequence)
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

    def taken_in(self, after: int, *, model_version: str) -> Sequence[str]:
        """What the calibration was told from version `after` on (0: from the first), as texts in no order."""
        with self._sessions.reading() as connection:
            return calibrations.taken_in(connection, after, model_version=model_version)

    def calibration_before(self, sequence: int) -> CalibrationRow | None:
        """The version that was made before another."""
        with self._sessions.reading() as connection:
            return calibrations.before(connection, sequence)

    def calibrations(self, *, limit: int, before_sequence: int | None) -> Sequence[CalibrationRow]:
        """Versions, newest first."""
        with self._sessions.reading() as connection:
            return calibrations.page(connection, limit=limit, before_sequence=before_sequence)

    def promote(self, sequence: int) -> None:
        """Makes a stored version the active one."""
        with self._sessions.writing() as connection:
            calibrations.promote(connection, sequence)

    def kept_out(self, *, limit: int, offset: int) -> Sequence[ObservationRow]:
        """Observations that were kept out, newest first."""
        with self._sessions.reading() as connection:
            return calibrations.kept_out(connection, limit=limit, offset=offset)

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
