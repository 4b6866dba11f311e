"""A real Slurm from the installed programs: munged, a controller and three node daemons with fake GPUs, on free loopback ports.

Everything of it lies in one temporary folder; the programs stay in the foreground and are ended by their process id.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.bench.programs import free_port

HERE = Path(__file__).parent
USER, OTHER_USER = "nobody", "daemon"
"""Two unprivileged users that every Debian has: one submits, the other looks on."""

NODES = ("h100n1", "h100n2", "a100n1")
"""The nodes that run jobs. h100n*: eight gpu:h100. a100n1: four gpu:a100-40 and four gpu:a100-80, and 32 shards of them."""

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "setpriv")
PLACES = ("lib", "lib64", "lib/*", "local/lib")
START_SECONDS, STOP_SECONDS = 30.0, 10.0
NULL_DEVICE = os.makedev(1, 3)
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
SUBMITTED = re.compile(r"Submitted batch job (\d+)|Pending job allocation (\d+)|Granted job allocation (\d+)|job (\d+) queued")
FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED"})

Done = subprocess.CompletedProcess[str]


def missing() -> str:
    """Why no cluster can be started here, in a sentence; empty when one can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=SEARCHED) is None]
    absent += [] if any(list(Path("/usr").glob(f"{place}/slurm*/job_submit_lua.so")) for place in PLACES) else ["the job_submit/lua plugin"]
    if absent:
        return f"{', '.join(absent)} not installed: apt-get install munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins lua-socket"
    return "" if os.geteuid() == 0 else "a test cluster of Slurm runs jobs of other users, so only root can start it"


@dataclass
class Slurm:
    """A running cluster."""

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def conf(self) -> Path:
        """What SLURM_CONF names."""
        return self.folder / "slurm.conf"

    def log(self, name: str = "slurmctld") -> str:
        """What a daemon has logged so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def home(self, user: str = USER) -> Path:
        """A folder of the user's own, where its commands and jobs run."""
        folder = self.folder / f"home-{user}"
        if not folder.exists():
            folder.mkdir()
            shutil.chown(folder, user)
        return folder

    def run(
        self,
        *command: str | Path,
        user: str = USER,
        env: Mapping[str, str] | None = None,
        reads_all: bool = False,
        stdin: str = "",
        seconds: float = 30.0,
    ) -> Done:
        """Runs a command as a user, in the user's folder; never raises for its exit code.

        `reads_all` lets it read files that only root may, which is where a machine's Python may lie; it can write none of them.
        """
        able = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"] if reads_all else ["--inh-caps=-all"]
        lowered = (
            [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups", *able, "--"]
        )
        variables = {"PATH": SEARCHED, "HOME": str(self.home(user)), "USER": user, "LANG": "C.UTF-8", "SLURM_CONF": str(self.conf)}
        whole = [*lowered, *map(str, command)]
        settings = variables | dict(env or {})
        return subprocess.run(
            whole, cwd=self.home(user), env=settings, input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )

    def script(self, text: str, *, user: str = USER, name: str = "") -> Path:
        """A file of the user's; a text without a first line that names a program gets one."""
        path = self.home(user) / (name or f"job{next(self.numbers)}.sh")
        path.write_text(text if text.startswith("#!") or name else f"#!/bin/bash\n{text}")
        path.chmod(0o755)
        shutil.chown(path, user)
        return path

    def sbatch(self, text: str, *flags: str, user: str = USER, env: Mapping[str, str] | None = None) -> Done:
        """Submits a script."""
        return self.run("sbatch", *flags, self.script(text, user=user), user=user, env=env)

    def job(self, number: int | str) -> dict[str, str]:
        """What the controller knows of a job, field by field."""
        return parse_record(self.run("scontrol", "show", "job", "-o", str(number), user="root").stdout)

    def wait(self, number: int | str, *, seconds: float = 30.0) -> dict[str, str]:
        """The job when it has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.job(number)
            if found.get("JobState") in FINAL:
                return found
            time.sleep(0.05)
        raise RuntimeError(f"job {number} does not end: {found}\n{self.log()[-2000:]}")

    def write(self, name: str, text: str) -> Path:
        """A file beside slurm.conf that everybody may read, such as a module that a Lua script requires.

        The controller loads a script again, in a new Lua state, when its file is newer than the one it has loaded; a file's time has
        whole seconds there, so it is counted up rather than read from the clock.
        """
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o644)
        self._touch(path)
        return path

    def job_submit(self, text: str) -> None:
        """Gives the controller its script, in force from the next submission on. A module that it requires is loaded anew."""
        self.write("job_submit.lua", text)

    def cli_filter(self, text: str) -> None:
        """Gives the submit commands their script."""
        self.write("cli_filter.lua", text)

    def end_jobs(self, *, seconds: float = 20.0) -> None:
        """Ends every job at once, and returns when none runs any more."""
        deadline = time.monotonic() + seconds
        while jobs := self.run("squeue", "-h", "-o", "%A", user="root").stdout.split():
            if time.monotonic() > deadline:
                raise RuntimeError(f"jobs do not end: {jobs}\n{self.log()[-2000:]}")
            self.run("scancel", "--quiet", "--state=PENDING", *jobs, user="root")
            self.run("scancel", "--quiet", "--full", "--signal=KILL", *jobs, user="root")
            time.sleep(0.05)

    def reset(self) -> None:
        """Ends all jobs and takes the scripts away."""
        self.end_jobs()
        for name in ("job_submit.lua", "cli_filter.lua"):
            self.write(name, (HERE / f"nothing_{name}").read_text())

    def _touch(self, path: Path) -> None:
        when = 1_000_000_000 + next(self.numbers)
        os.utime(path, (when, when))


def parse_record(line: str) -> dict[str, str]:
    """`Name=value Name=value` as `scontrol show … -o` prints it; a value may hold blanks."""
    parts = re.split(r"(?:^|\s)([A-Z][A-Za-z:/_]*)=", line.strip())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def job_number(done: Done) -> int:
    """The job that a command made."""
    found = SUBMITTED.search(done.stdout + done.stderr)
    if found is None:
        raise AssertionError(f"no job: {done.returncode} {done.stdout!r} {done.stderr!r}")
    return int(next(filter(None, found.groups())))


def _devices(folder: Path) -> None:
    """Stand-ins for /dev/nvidia0 to 7; where no device may be made, plain files."""
    folder.mkdir()
    for number in range(8):
        path = folder / f"nvidia{number}"
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, NULL_DEVICE)
        except PermissionError:
            path.touch()


def _lay_out(slurm: Slurm, settings: str) -> int:
    """Writes every file of a new cluster; returns the controller's port."""
    folder, ports = slurm.folder, [free_port() for _ in range(len(NODES) + 1)]
    folder.chmod(0o755)
    _devices(folder / "dev")
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    host = socket.gethostname().partition(".")[0]
    values = {"folder": folder, "host": host, "controller_port": ports[0], "node_ports": ports[1:], "settings": settings}
    for name in ("slurm.conf", "gres.conf"):
        (folder / name).write_text((HERE / f"{name}.in").read_text().format(**values))
    for name in ("prolog", "epilog"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    for name in ("job_submit.lua", "cli_filter.lua"):
        slurm.write(name, (HERE / f"nothing_{name}").read_text())
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    return ports[0]


def _start(slurm: Slurm, name: str, *command: str) -> None:
    path = shutil.which(command[0], path=SEARCHED)
    if path is None:
        raise RuntimeError(missing())
    with (slurm.folder / f"{name}.out").open("wb") as output:
        slurm.processes[name] = subprocess.Popen(
            [path, *command[1:]], cwd=slurm.folder, env={"PATH": SEARCHED, "SLURM_CONF": str(slurm.conf)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip


def start_controller(slurm: Slurm) -> None:
    """Starts the controller; it takes connections a moment later."""
    _start(slurm, "slurmctld", "slurmctld", "-D", "-f", str(slurm.conf))


def _wait_for(slurm: Slurm, what: str, holds: Callable[[], bool]) -> None:
    """Until it holds; raises RuntimeError with the logs when it takes too long or a daemon has ended."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if holds():
            return
        ended = [name for name, process in slurm.processes.items() if process.poll() is not None]
        if ended:
            raise RuntimeError(f"{ended} ended before {what}:\n" + "".join((slurm.folder / f"{n}.out").read_text()[-2000:] for n in ended))
        time.sleep(0.02)
    raise RuntimeError(f"no {what} after {START_SECONDS} s:\n{slurm.log()[-2000:]}")


def answers(port: int) -> bool:
    """Whether a server takes connections on a loopback port. A client of Slurm's would wait for ten seconds instead."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _are_idle(slurm: Slurm) -> bool:
    done = slurm.run("timeout", "5", "sinfo", "-h", "-N", "-n", ",".join(NODES), "-o", "%N %t", user="root")
    return set(done.stdout.splitlines()) == {f"{node} idle" for node in NODES}


def _end(process: subprocess.Popen[bytes], by: signal.Signals) -> None:
    process.send_signal(signal.SIGCONT)
    process.send_signal(by)
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _stop(slurm: Slurm) -> None:
    """Ends the daemons and then the jobs. What the controller would save at its end is thrown away, so it need not."""
    for name, process in reversed(slurm.processes.items()):
        _end(process, signal.SIGKILL if name == "slurmctld" else signal.SIGTERM)
    for number in _left_over(slurm):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def _left_over(slurm: Slurm) -> list[int]:
    """Processes of jobs: they have the name of this cluster's slurm.conf, which no other cluster has, in their environment."""
    mark, found = f"SLURM_CONF={slurm.conf}\0".encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes() + b"\0":
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def cluster(settings: str = "") -> Iterator[Slurm]:
    """A new cluster; `settings` are more lines of slurm.conf."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    slurm = Slurm(folder)
    try:
        port = _lay_out(slurm, settings)
        munge = ("--key-file", "munge.key"), ("--socket", "munge.sock"), ("--pid-file", "munged.pid"), ("--log-file", "munged.log")
        places = [f"{option}={folder / name}" for option, name in (*munge, ("--seed-file", "munged.seed"))]
        _start(slurm, "munged", "munged", "--foreground", "--force", *places)
        _wait_for(slurm, "munge socket", (folder / "munge.sock").exists)
        start_controller(slurm)
        _wait_for(slurm, "controller", lambda: answers(port))
        for node in NODES:
            _start(slurm, f"slurmd-{node}", "slurmd", "-D", "-N", node, "-f", str(slurm.conf))
        _wait_for(slurm, "idle nodes", lambda: _are_idle(slurm))
        yield slurm
    finally:
        _stop(slurm)
        shutil.rmtree(folder, ignore_errors=True)
