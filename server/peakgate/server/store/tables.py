"""The tables. `migrations/` makes the same ones, which a test compares."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text, text

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
}
metadata = MetaData(naming_convention=NAMES)

jobs = Table(
    "jobs",
    metadata,
    Column("digest", String(64), primary_key=True),  # SHA-256 of the serialised job: equal jobs are stored once
    Column("body", LargeBinary, nullable=False),
)

predictions = Table(
    "predictions",
    metadata,
    Column("prediction", String(64), primary_key=True),
    Column("created_us", BigInteger, nullable=False),
    Column("request_id", String(128), unique=True),
    Column("request_digest", String(64)),
    Column("job_digest", String(64), ForeignKey("jobs.digest"), nullable=False, index=True),
    Column("job_name", String(200), nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("group_name", String(200), nullable=False),
    Column("required_bytes", BigInteger, nullable=False),
    Column("device_bytes", BigInteger, nullable=False),
    Column("bound_bytes", BigInteger, nullable=False),
    Column("total_bytes", BigInteger, nullable=False),
    Column("model_version", String(64), nullable=False),
    Column("calibration_version", String(64), nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("subject", Text, nullable=False, server_default=text("''")),  # what the calibration knows the job as, as JSON
    Column("user_name", String(256), nullable=False, server_default=text("''")),  # who asked, as the caller said; empty: nobody said
    Column("state", String(16), nullable=False),  # running finished oom failed cancelled; empty: bound to no job, expires
)
Index("ix_predictions_newest", predictions.c.created_us, predictions.c.prediction)
_UNUSED = predictions.c.state == ""
Index("ix_predictions_unused", predictions.c.created_us, sqlite_where=_UNUSED, postgresql_where=_UNUSED)  # those that expire: few of all

PROCESS_KEY = ("cluster", "node", "gpu_uuid", "job", "restart", "prediction", "pid", "pid_start_ticks")
PEAK_KEY = (*PROCESS_KEY, "source", "step")
PHASE_KEY = (*PROCESS_KEY, "phase")


def _process_columns() -> list[Column[object]]:
    """Those of PROCESS_KEY. A table owns its columns, so each has its own."""
    return [
        Column("cluster", String(256), primary_key=True),
        Column("node", String(256), primary_key=True),
        Column("gpu_uuid", String(128), primary_key=True),
        Column("job", String(256), primary_key=True),
        Column("restart", BigInteger, primary_key=True, autoincrement=False),
        Column("prediction", String(256), primary_key=True, index=True),  # no foreign key: it comes from a job's environment
        Column("pid", BigInteger, primary_key=True, autoincrement=False),
        Column("pid_start_ticks", BigInteger, primary_key=True, autoincrement=False),
    ]


peaks = Table(
    "peaks",
    metadata,
    *_process_columns(),
    Column("source", String(32), primary_key=True),
    Column("step", String(256), primary_key=True),
    Column("gpu_name", String(256), nullable=False),
    Column("gpu_total_bytes", BigInteger, nullable=False),
    Column("peak_bytes", BigInteger, nullable=False),
    Column("torch_allocated_bytes", BigInteger, nullable=False),
    Column("torch_reserved_bytes", BigInteger, nullable=False),
    Column("first_us", BigInteger, nullable=False, index=True),  # for retention: it changes only when a row comes out of order
    Column("last_us", BigInteger, nullable=False),
    Column("peak_us", BigInteger, nullable=False),
    Column("samples", BigInteger, nullable=False),
    Column("gaps", BigInteger, nullable=False),
    Column("flags", Integer, nullable=False),
    Column("ended", Integer, nullable=False),
    Column("uid", BigInteger, nullable=False),
    Column("boot_id", String(256), nullable=False),
    Column("agent_version", String(256), nullable=False),
    Column("driver_version", String(256), nullable=False),
    Column("steps_done", BigInteger, nullable=False),
    Column("longest_sequence", BigInteger, nullable=False),
    Column("alloc_retries", BigInteger, nullable=False),
    Column("ooms", BigInteger, nullable=False),
    Column("longest_gap_us", BigInteger, nullable=False),
    Column("xid", Integer, nullable=False),
)

phase_peaks = Table(
    "phase_peaks",
    metadata,
    *_process_columns(),
    Column("phase", String(16), primary_key=True),
    Column("allocated_bytes", BigInteger, nullable=False),
    Column("reserved_bytes", BigInteger, nullable=False),
)

job_events = Table(
    "job_events",
    metadata,
    Column("cluster", String(256), primary_key=True),
    Column("job", String(256), primary_key=True),
    Column("restart", BigInteger, primary_key=True, autoincrement=False),
    Column("prediction", String(256), primary_key=True, index=True),
    Column("event", String(16), primary_key=True),
    Column("event_us", BigInteger, nullable=False, index=True),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("origin", String(32), nullable=False),
)

ended_attempts = Table(
    "ended_attempts",
    metadata,
    Column("prediction", String(256), primary_key=True),
    Column("job", String(256), primary_key=True),
    Column("restart", BigInteger, primary_key=True, autoincrement=False),
    Column("seen_us", BigInteger, nullable=False),
)

observations = Table(
    "observations",
    metadata,
    Column("prediction", String(64), ForeignKey("predictions.prediction"), primary_key=True),
    Column("job", String(256), primary_key=True),
    Column("restart", BigInteger, primary_key=True, autoincrement=False),
    Column("observed_bytes", BigInteger, nullable=False),
    Column("predicted_bytes", BigInteger, nullable=False),
    Column("lower_bytes", BigInteger, nullable=False),
    Column("upper_bytes", BigInteger),
    Column("finished_us", BigInteger, nullable=False),
    Column("applied_us", BigInteger, nullable=False),
    Column("learned", Integer, nullable=False),
    Column("reason", String(64), nullable=False),
    Column("message", Text, nullable=False),
    Column("kind", String(8), nullable=False),  # exact lower upper dropped
    Column("source", String(32), nullable=False),
    Column("confidence", String(1), nullable=False),  # A B C D X
    Column("origin", String(16), nullable=False),  # agent sacct prometheus
    Column("node", String(256), nullable=False),
    Column("gpu_uuid", String(128), nullable=False),
    Column("steps_done", BigInteger, nullable=False),
    Column("longest_sequence", BigInteger, nullable=False),
    Column("body", Text, nullable=False, server_default=text("''")),  # what the calibration was told, as JSON; empty: nothing
    Column("sequence", BigInteger, nullable=False, index=True, server_default="0"),  # of the version that took it in; 0: none did
    Column("aside", Integer, nullable=False, server_default="0"),  # 1: that version was gone back from; 2, 3: lines.py
    Column(
        "released", Integer, nullable=False, server_default="0"
    ),  # sequence of the version that learned it when a person let it; 0: nobody did
    Column("released_by", String(256), nullable=False, server_default=text("''")),
    Column("released_why", Text, nullable=False, server_default=text("''")),
)
Index("ix_observations_kept_out", observations.c.learned, observations.c.applied_us)

calibrations = Table(
    "calibrations",
    metadata,
    Column("sequence", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("parent", BigInteger, nullable=False, server_default="0"),  # sequence of the version that it was made from; 0: none
    Column("version", String(64), nullable=False, index=True),
    Column("state", String(16), nullable=False),  # active shadow retired
    Column("created_us", BigInteger, nullable=False),
    Column("observations", BigInteger, nullable=False),
    Column("groups", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column(
        "kind", String(16), nullable=False, server_default=text("''")
    ),  # daily alarm promoted: why it is kept; empty: it is not kept for long
    Column("note", Text, nullable=False, server_default=text("''")),  # one line for a person: which level moved, who promoted it
    Column("trial", Text, nullable=False, server_default=text("''")),  # what a shadow version has shown so far, as JSON
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("fence", BigInteger, nullable=False),  # rises with each new holder: what an earlier one still writes is refused
    Column("expires_us", BigInteger, nullable=False),  # by the database's clock
)

tries = Table(
    "tries",
    metadata,
    Column("prediction", String(64), primary_key=True),  # no foreign key: it is written before the prediction
    Column("user_name", String(256), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
)
Index("ix_tries_user_name_created_us", tries.c.user_name, tries.c.created_us)
