"""A real PostgreSQL server, and a real PgBouncer before it, from the installed programs: on free loopback ports, ended by process id."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.bench.programs import free_port

DEBIAN = Path("/usr/lib/postgresql")
USER = "postgres"
START_SECONDS = 30.0
# A test's database is thrown away, so nothing of it need reach the disk; the bench turns this on again.
VOLATILE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
DURABLE = ("fsync=on", "synchronous_commit=on")


@dataclass
class Cluster:
    """A running server. Its databases are emptied and used again, which takes a tenth of the time of a new one."""

    port: int
    process_id: int
    numbers: Iterator[int] = field(default_factory=count)
    empty: list[str] = field(default_factory=list)

    def url(self, database: str) -> str:
        """Of one of its databases."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def run(self, *statements: str, database: str = "postgres") -> None:
        """Runs statements, each for itself, such as CREATE DATABASE must be."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def new_database(self) -> str:
        """The name of an empty database."""
        if self.empty:
            return self.empty.pop()
        name = f"test_{next(self.numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return name

    def give_back(self, database: str) -> None:
        """Empties a database; whoever is still connected to it no longer is."""
        others = f"datname = '{database}' AND pid <> pg_backend_pid()"
        end = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}"
        self.run(end, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", database=database)
        self.empty.append(database)


def program(name: str) -> Path | None:
    """An installed program of PostgreSQL or PgBouncer; Debian keeps the server's out of the search path. None: not installed."""
    versions = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3])) if DEBIAN.is_dir() else []
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return versions[-1] if versions else (Path(found) if found else None)


def missing() -> str:
    """What is to be installed, in a sentence; empty when everything is there."""
    absent = [name for name in ("initdb", "postgres", "pgbouncer") if program(name) is None]
    return f"{', '.join(absent)} not installed: apt-get install postgresql pgbouncer" if absent else ""


def _user() -> str | None:
    """Neither server runs as root, so root starts them as the user that Debian's package made; None: as who we are."""
    return USER if os.geteuid() == 0 else None


def _groups() -> list[str] | None:
    return [] if os.geteuid() == 0 else None


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder of the servers' user, with a path that is short enough for a unix socket's."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _started(command: list[str], log: Path, stop: signal.Signals) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        who, none = _user(), subprocess.DEVNULL
        process = subprocess.Popen(
            command, cwd="/", stdin=none, stdout=output, stderr=subprocess.STDOUT, user=who, group=who, extra_groups=_groups()
        )
    try:
        yield process
    finally:
        process.send_signal(stop)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=2):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} takes no connections:\n{log.read_text()[-2000:]}")


@contextlib.contextmanager
def cluster(settings: tuple[str, ...] = VOLATILE) -> Iterator[Cluster]:
    """A new server that trusts whoever reaches it on the loopback address."""
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        raise RuntimeError(missing())
    with _folder() as folder:
        options = ["--no-sync", "--auth=trust", f"--username={USER}", "--encoding=UTF8", "--locale=C"]
        command = [str(initdb), *options, "-D", str(folder / "data")]
        who = _user()
        subprocess.run(command, cwd="/", check=True, stdout=subprocess.DEVNULL, user=who, group=who, extra_groups=_groups())
        port = free_port()
        places = ("listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "max_connections=100", "shared_buffers=64MB")
        options = [text for setting in (*places, *settings) for text in ("-c", setting)]
        log = folder / "log"
        with _started([str(postgres), "-D", str(folder / "data"), "-p", str(port), *options], log, signal.SIGINT) as process:
            running = Cluster(port, process.pid)
            _wait(running.url("postgres"), process, log)
            yield running


BOUNCER = """[databases]
* = host=127.0.0.1 port={server_port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
logfile =
"""


@contextlib.contextmanager
def bouncer(server: Cluster, *, connections: int = 2) -> Iterator[Cluster]:
    """A PgBouncer in transaction mode: `connections` of the server a database, dealt out anew for each transaction."""
    name = program("pgbouncer")
    if name is None:
        raise RuntimeError(missing())
    with _folder() as folder:
        port = free_port()
        settings = folder / "pgbouncer.ini"
        settings.write_text(BOUNCER.format(server_port=server.port, user=USER, port=port, connections=connections))
        settings.chmod(0o644)
        log = folder / "log"
        with _started([str(name), str(settings)], log, signal.SIGINT) as process:
            running = Cluster(port, process.pid)
            _wait(running.url("postgres"), process, log)
            yield running
