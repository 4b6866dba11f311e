"""The programs that the bench measures, started as real processes on free loopback ports and ended by their process id."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc

ROOT = Path(__file__).resolve().parents[2]
PEAKGATE = Path(sys.executable).with_name("peakgate")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
START_SECONDS = 60.0


@dataclass(frozen=True)
class Program:
    """A running server."""

    process: subprocess.Popen[bytes]
    target: str

    def cpu_seconds(self) -> float:
        """User and system time of the process so far (proc(5): fields 14 and 15 of stat, counted after the name in brackets)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def machine_cpu_seconds() -> float:
    """Time that all processors of the machine spent on anything but idling (proc(5): the first line of stat)."""
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq) / TICKS_PER_SECOND


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without settings of peakgate, plus changes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PEAKGATE_")} | changes


def wait_for(program: Program, log: Path) -> None:
    """Returns when the server takes calls; raises RuntimeError with its log when it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    with grpc.insecure_channel(program.target) as channel:
        ready = grpc.channel_ready_future(channel)
        while time.monotonic() < deadline and program.process.poll() is None:
            with contextlib.suppress(grpc.FutureTimeoutError):
                ready.result(timeout=0.2)
                return
        ready.cancel()
    raise RuntimeError(f"{program.process.args!r} does not answer at {program.target}:\n{log.read_text()[-2000:]}")


@contextlib.contextmanager
def running(command: list[str], port: int, settings: Mapping[str, str], folder: Path) -> Iterator[Program]:
    """Runs a server until the block ends; its output goes to a log in the folder."""
    log = folder / f"server-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment(**settings), stdout=output, stderr=subprocess.STDOUT)
    program = Program(process, f"127.0.0.1:{port}")
    try:
        wait_for(program, log)
        yield program
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def echo_server(folder: Path) -> contextlib.AbstractContextManager[Program]:
    """The empty unary echo that a prediction is held against."""
    port = free_port()
    return running([sys.executable, "-m", "tests.bench.echo", str(port)], port, {}, folder)


def peakgate_server(folder: Path) -> contextlib.AbstractContextManager[Program]:
    """`peakgate serve` on a fresh SQLite file."""
    port = free_port()
    settings = {
        "PEAKGATE_GRPC_PORT": str(port),
        "PEAKGATE_HTTP_PORT": str(free_port()),
        "PEAKGATE_DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
    }
    return running([str(PEAKGATE), "serve"], port, settings | {"PEAKGATE_LOG_LEVEL": "WARNING"}, folder)
