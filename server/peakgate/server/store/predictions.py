"""Predictions and their jobs."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Connection, Row, Select, and_, delete, exists, func, literal_column, or_, select, update

from peakgate.server.store.postgresql import Lock, take
from peakgate.server.store.records import ACCOUNTING, SAMPLED, PredictionContent, PredictionRow, RecentRow, StoredPrediction
from peakgate.server.store.session import insert_for
from peakgate.server.store.tables import job_events, jobs, observations, peaks, predictions, tries

JOB_NAME_CHARACTERS = 200
"""Of a job's name that are kept; a name identifies nothing."""

EXPIRED_AT_ONCE = 20_000
"""Predictions of one transaction, a second or two; every ten minutes that is the work of 33 unused predictions a second."""

DEVICE_SOURCES = (*SAMPLED, ACCOUNTING)
"""Sources that show the memory of one GPU as nvidia-smi does. The helper knows its allocator only, Slurm's figure is of several GPUs."""


def add(connection: Connection, rows: Sequence[PredictionRow]) -> None:
    """Stores predictions. A repeated one, or one whose request id another replica has stored already, changes nothing.

    Rows go in the order of their keys, so that two replicas never wait for each other.
    """
    take(connection, Lock.JOBS, shared=True)
    rows = sorted(rows, key=lambda row: (row.request_id or "", row.prediction))
    bodies = dict(sorted((row.content.job_digest, row.content.job) for row in rows))
    connection.execute(
        insert_for(connection, jobs).on_conflict_do_nothing(),
        [{"digest": digest, "body": zlib.compress(body)} for digest, body in bodies.items()],
    )
    connection.execute(insert_for(connection, predictions).on_conflict_do_nothing(), [_columns(row) for row in rows])


def _columns(row: PredictionRow) -> dict[str, object]:
    content = row.content
    return {
        "prediction": row.prediction,
        "created_us": row.created_us,
        "request_id": row.request_id,
        "request_digest": row.request_digest,
        "job_digest": content.job_digest,
        "job_name": content.job_name[:JOB_NAME_CHARACTERS],
        "verdict": content.verdict,
        "group_name": content.group,
        "required_bytes": content.required_bytes,
        "device_bytes": content.device_bytes,
        "bound_bytes": content.bound_bytes,
        "total_bytes": content.total_bytes,
        "model_version": content.model_version,
        "calibration_version": content.calibration_version,
        "answer": content.answer,
        "subject": content.subject,
        "user_name": row.user,
        "state": "",
    }


def _selected() -> Select[tuple[object, ...]]:
    of_job = (peaks.c.prediction == predictions.c.prediction, peaks.c.source.in_(DEVICE_SOURCES))
    observed = select(func.coalesce(func.max(peaks.c.peak_bytes), 0)).where(*of_job)
    body, observed_bytes = jobs.c.body.label("job_body"), observed.scalar_subquery().label("observed_bytes")
    return select(predictions, body, observed_bytes).join(jobs, jobs.c.digest == predictions.c.job_digest)


def by_name(connection: Connection, prediction: str) -> StoredPrediction | None:
    """One prediction."""
    row = connection.execute(_selected().where(predictions.c.prediction == prediction)).first()
    return _stored(row) if row is not None else None


def by_request(connection: Connection, request_id: str) -> StoredPrediction | None:
    """The prediction that answered a request id."""
    row = connection.execute(_selected().where(predictions.c.request_id == request_id)).first()
    return _stored(row) if row is not None else None


def names_of(connection: Connection, request_ids: Collection[str]) -> dict[str, str]:
    """The names of the predictions that answered request ids, by request id; the column is unique, which is its index."""
    table = predictions.c
    query = select(table.request_id, table.prediction).where(table.request_id.in_(sorted(request_ids)))
    return {row.request_id: row.prediction for row in connection.execute(query)}


def request_ids(connection: Connection) -> list[str]:
    """Every request id that was answered."""
    return list(connection.execute(select(predictions.c.request_id).where(predictions.c.request_id.is_not(None))).scalars())


def page(
    connection: Connection, *, limit: int, before: tuple[int, str] | None, observed_only: bool, tries_only: bool
) -> list[StoredPrediction]:
    """Predictions, newest first, older than the one at (created_us, prediction) `before`."""
    query = _selected().order_by(predictions.c.created_us.desc(), predictions.c.prediction.desc()).limit(limit)
    if before is not None:
        created_us, prediction = before
        same_moment = and_(predictions.c.created_us == created_us, predictions.c.prediction < prediction)
        query = query.where(or_(predictions.c.created_us < created_us, same_moment))
    if observed_only:
        query = query.where(predictions.c.state != "")
    if tries_only:
        query = query.where(predictions.c.prediction.in_(select(tries.c.prediction)))
    return [_stored(row) for row in connection.execute(query)]


def recent(connection: Connection, limit: int) -> list[RecentRow]:
    """What the newest predictions were of, the newest first."""
    columns = predictions.c.job_digest, predictions.c.user_name, predictions.c.subject
    query = select(*columns).order_by(predictions.c.created_us.desc(), predictions.c.prediction.desc()).limit(limit)
    return [RecentRow(job_digest=row.job_digest, user=row.user_name, subject=row.subject) for row in connection.execute(query)]


def bind(connection: Connection, names: Iterable[str], *, state: str) -> None:
    """Marks predictions as used by a job, so that they do not expire. `running` does not replace a later state."""
    bound = select(predictions.c.prediction).where(predictions.c.prediction.in_(sorted(set(names))))
    if state == "running":
        bound = bound.where(predictions.c.state == "")
    in_order = bound.order_by(predictions.c.prediction).with_for_update()  # so that two replicas never wait for each other
    connection.execute(update(predictions).where(predictions.c.prediction.in_(in_order)).values(state=state))


def unused(before_us: int) -> Select[tuple[str]]:
    """The oldest predictions that no job uses and no try rests on. The empty state is no parameter, so that its index is known to hold
    them all."""
    old = and_(predictions.c.state == literal_column("''"), predictions.c.created_us < before_us)
    uses = [~exists().where(table.c.prediction == predictions.c.prediction) for table in (peaks, job_events, observations, tries)]
    return select(predictions.c.prediction).where(old, *uses).order_by(predictions.c.created_us).limit(EXPIRED_AT_ONCE)


def expire(connection: Connection, before_us: int) -> int:
    """Deletes predictions from before `before_us` that no job uses, and their jobs when no other prediction is of them.

    At most EXPIRED_AT_ONCE, the oldest; returns how many. Nobody stores a prediction meanwhile: its job might be among those that go.
    """
    take(connection, Lock.JOBS)
    deleting = delete(predictions).where(predictions.c.prediction.in_(unused(before_us))).returning(predictions.c.job_digest)
    digests = list(connection.execute(deleting).scalars())
    unused_job = ~exists().where(predictions.c.job_digest == jobs.c.digest)
    for digest in sorted(set(digests)):
        connection.execute(delete(jobs).where(jobs.c.digest == digest, unused_job))
    return len(digests)


def _stored(row: Row[tuple[object, ...]]) -> StoredPrediction:
    values = row._mapping  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
    content = PredictionContent(
        job=zlib.decompress(values["job_body"]),
        job_digest=values["job_digest"],
        job_name=values["job_name"],
        verdict=values["verdict"],
        group=values["group_name"],
        required_bytes=values["required_bytes"],
        device_bytes=values["device_bytes"],
        bound_bytes=values["bound_bytes"],
        total_bytes=values["total_bytes"],
        model_version=values["model_version"],
        calibration_version=values["calibration_version"],
        answer=values["answer"],
        subject=values["subject"],
    )
    prediction = PredictionRow(
        prediction=values["prediction"],
        created_us=values["created_us"],
        request_id=values["request_id"],
        request_digest=values["request_digest"],
        content=content,
        user=values["user_name"],
    )
    return StoredPrediction(row=prediction, state=values["state"], observed_device_bytes=values["observed_bytes"])
