"""The service and its database."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from peakgate.client.doctor.check import Check, State

_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "9p", "afs", "glusterfs", "fuse.sshfs"}
)
"""Where SQLite's write-ahead log does not work: https://www.sqlite.org/wal.html, "all processes must be on the same host"."""

_TIMEOUT_SECONDS = 3.0


def service_checks(server: str | None, database_url: str | None) -> Iterator[Check]:
    """The named service and the named database; one that is not named is not asked."""
    if server:
        yield _service(server)
    else:
        yield Check(
            name="service",
            state=State.note,
            found="none named; the command runs one inside itself",
            remedy="set PEAKGATE_SERVER=HOST:50551",
        )
    if not database_url:
        yield Check(name="database", state=State.note, found="none named; the service inside the command keeps nothing")
    elif database_url.startswith("sqlite"):
        yield _sqlite(database_url)
    else:
        yield _other_database(database_url)


def _service(server: str) -> Check:
    import grpc

    health = "/grpc.health.v1.Health/Check"
    with grpc.insecure_channel(server) as channel:
        # An empty request asks for the whole server; field 1 of the answer is its state (1: SERVING).
        call = channel.unary_unary(health, request_serializer=bytes, response_deserializer=bytes)
        try:
            answer = call(b"", timeout=_TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            return Check(
                name="service",
                state=State.bad,
                found=f"{server}: {_short(error)}",
                remedy=f"start `peakgate serve` there, or check that {server} is reachable",
            )
    if answer == b"\x08\x01":
        return Check(name="service", state=State.ok, found=f"{server} is serving")
    return Check(
        name="service", state=State.bad, found=f"{server} answers but is not serving", remedy="it is starting or stopping; see its log"
    )


def _short(error: Exception) -> str:
    code = getattr(error, "code", None)
    return code().name if callable(code) else str(error)


def _sqlite(url: str) -> Check:
    path = Path(url.split("///", 1)[-1] or ".").absolute()
    kind = file_system_of(path, _mounts())
    if kind in _NETWORK_FILE_SYSTEMS:
        return Check(name="database", state=State.bad, found=f"{path} is on {kind}", remedy="put SQLite on a local disk, or use PostgreSQL")
    folder = next(parent for parent in path.parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Check(
            name="database", state=State.bad, found=f"{folder}: {error.strerror}", remedy="give the service's user the right to write there"
        )
    if path.exists() and not os.access(path, os.W_OK):
        return Check(
            name="database", state=State.bad, found=f"{path} cannot be written", remedy="give the service's user the right to write it"
        )
    return Check(name="database", state=State.ok, found=f"{path} on {kind}, writable")


def _other_database(url: str) -> Check:
    try:
        import sqlalchemy

        from peakgate.server.errors import PeakgateError
        from peakgate.server.store.engine import open_engine
    except ImportError:
        return Check(name="database", state=State.bad, found="SQLAlchemy is not installed", remedy="pip install 'peakgate[server]'")
    name = sqlalchemy.make_url(url).render_as_string(hide_password=True)
    try:
        engine = open_engine(url)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("SELECT 1"))
        engine.dispose()
    except (sqlalchemy.exc.SQLAlchemyError, PeakgateError) as error:
        return Check(
            name="database",
            state=State.bad,
            found=f"{name}: {str(error).splitlines()[0]}",
            remedy="check host, user and password; start the database",
        )
    return Check(name="database", state=State.ok, found=f"{name} answers")


def _mounts() -> list[tuple[str, str]]:
    """(mount point, file system) of this machine; empty where there is no /proc."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [(fields[1].replace("\\040", " "), fields[2]) for line in lines if len(fields := line.split()) > 2]


def file_system_of(path: Path, mounts: Sequence[tuple[str, str]]) -> str:
    """The kind of file system that holds `path`: that of the longest mount point above it."""
    above = [(Path(point), kind) for point, kind in mounts if path.is_relative_to(point)]
    return max(above, key=lambda mount: len(mount[0].parts))[1] if above else "an unknown file system"
