"""The helper's socket, with real processes at its other end."""

from __future__ import annotations

import array
import contextlib
import os
import queue
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from peakgate.agent.errors import UsageError
from peakgate.agent.helper_socket import Datagram, HelperSocket
from peakgate.agent.proc import ProcFolder
from peakgate.v1.allocator_report import MAX_BYTES

IMPORT = "import os, socket, sys"
BECOME = "os.setgroups([]), os.setgid(23456), os.setuid(12345)"
SEND = "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'%d' % os.getpid(), sys.argv[1]); input()"


class Received:
    """A socket and what came to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "agent.sock"
        self.datagrams: queue.Queue[Datagram] = queue.Queue()
        self.socket = HelperSocket(path=self.path, receive=self.datagrams.put)

    def next(self) -> Datagram:
        """The next datagram, or a failed test."""
        return self.datagrams.get(timeout=20)

    def send(self, content: bytes, *, ancillary: list[tuple[int, int, bytes]] | None = None) -> None:
        """A datagram from this process."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendmsg([content], ancillary or [], 0, str(self.path))


@pytest.fixture
def received(tmp_path: Path) -> Iterator[Received]:
    """A socket that is read."""
    received = Received(tmp_path)
    received.socket.start()
    yield received
    received.socket.stop()


@contextlib.contextmanager
def a_sender(path: Path, *wrapper: str, code: str = f"{IMPORT}; {SEND}") -> Iterator[subprocess.Popen[bytes]]:
    """A child that sends the pid that it knows itself by, and stays until it is told to end."""
    with subprocess.Popen([*wrapper, sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield process


def test_the_kernel_says_who_sent(received: Received) -> None:
    """Pid, user and group of a real child."""
    with a_sender(received.path) as child:
        got = received.next()
        assert (got.pid, got.uid, got.gid) == (child.pid, os.getuid(), os.getgid())
        assert got.content == b"%d" % child.pid


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_another_user_may_send_and_is_known() -> None:
    """Jobs run as their users: the socket takes their datagrams, and names them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        received = Received(Path(folder))
        received.socket.start()
        with a_sender(received.path, code=f"{IMPORT}; {BECOME}; {SEND}") as child:
            got = received.next()
            assert (got.pid, got.uid, got.gid) == (child.pid, 12345, 23456)
        received.socket.stop()


def can_unshare() -> bool:
    """Whether this machine permits a new pid namespace."""
    command = ["unshare", "--pid", "--fork", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="a new pid namespace is not permitted here")
def test_a_sender_in_a_container_arrives_with_the_hosts_pid(received: Received) -> None:
    """In its own pid namespace the child is process 1; here it is the process that /proc shows below the command that made it."""
    with a_sender(received.path, "unshare", "--pid", "--fork") as outer:
        got = received.next()
        assert got.content == b"1"
        program = ProcFolder().program(got.pid)
        assert program
        assert program.parent_pid == outer.pid


def test_nobody_can_report_for_another_process(received: Received) -> None:
    """Credentials that a sender makes up are refused by the kernel, or root's are at most those of a process that lives."""
    with a_sender(received.path) as child:
        received.next()
        forged = array.array("i", [child.pid, os.getuid(), os.getgid()]).tobytes()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, forged)]
        if os.getuid() == 0:
            received.send(b"by root", ancillary=ancillary)
            assert received.next().pid == child.pid
        else:
            with pytest.raises(PermissionError):
                received.send(b"forged", ancillary=ancillary)


def test_a_datagram_that_is_too_long_is_dropped(received: Received) -> None:
    """The longest that is allowed arrives whole; a longer one is counted and not cut."""
    with capture_logs() as logs:
        for _ in range(2):
            received.send(b"x" * (MAX_BYTES + 1))
        received.send(b"y" * MAX_BYTES)
        assert received.next().content == b"y" * MAX_BYTES
    assert received.socket.dropped == {"too_long": 2}
    assert [entry["reason"] for entry in logs] == ["too_long"]


def test_an_empty_datagram_is_one(received: Received) -> None:
    """Its meaning is not this file's matter."""
    received.send(b"")
    assert received.next().content == b""


def open_files() -> int:
    """Descriptors of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_files_that_are_sent_along_are_closed(received: Received) -> None:
    """A sender cannot fill the agent's table of open files."""
    received.send(b"the thread runs")
    received.next()
    before = open_files()
    with Path("/dev/null").open() as null:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null.fileno()] * 8).tobytes())]
        for _ in range(20):
            received.send(b"x", ancillary=rights)
            assert received.next().pid == os.getpid()
    assert open_files() == before


def test_a_reader_that_fails_does_not_end_the_socket(tmp_path: Path) -> None:
    """Whatever a datagram does to its reader, the next one is read."""
    received = Received(tmp_path)

    def read(datagram: Datagram) -> None:
        if datagram.content == b"bad":
            raise RuntimeError("not understood")
        received.datagrams.put(datagram)

    received.socket = HelperSocket(path=received.path, receive=read)
    received.socket.start()
    with capture_logs() as logs:
        received.send(b"bad")
        received.send(b"good")
        assert received.next().content == b"good"
    received.socket.stop()
    assert received.socket.dropped == {"failed": 1}
    assert "not understood" in logs[0]["problem"]


def test_a_sender_is_never_held_up(tmp_path: Path) -> None:
    """While the reader is busy, a sender that does not wait gets its error at once; afterwards what was queued arrives."""
    received = Received(tmp_path)
    gate = threading.Event()

    def read(datagram: Datagram) -> None:
        gate.wait()
        received.datagrams.put(datagram)

    received.socket = HelperSocket(path=received.path, receive=read)
    received.socket.start()
    sent = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for sent in range(100_000):  # noqa: B007 (the last number is how many went)
                sender.sendto(b"x" * 1000, str(received.path))
    gate.set()
    assert 0 < sent < 99_999
    assert all(received.next().content == b"x" * 1000 for _ in range(sent))
    received.socket.stop()


def test_a_socket_that_was_left_is_replaced(tmp_path: Path) -> None:
    """An agent that was killed leaves its socket file; the next one binds anew."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(tmp_path / "agent.sock"))
    received = Received(tmp_path)
    received.socket.start()
    received.send(b"x")
    assert received.next().content == b"x"
    assert stat.S_IMODE(received.path.stat().st_mode) == 0o666
    received.socket.stop()


def test_what_is_not_ours_is_left_alone(tmp_path: Path, received: Received) -> None:
    """A socket that another agent reads, a file of that name and a missing folder each end the start with one clear line."""
    other = HelperSocket(path=received.path, receive=received.datagrams.put)
    with pytest.raises(UsageError, match="another agent reads it"):
        other.start()
    other.stop()
    received.send(b"still here")
    assert received.next().content == b"still here"
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "nowhere" / "agent.sock"):
        failing = HelperSocket(path=path, receive=received.datagrams.put)
        with pytest.raises(UsageError):
            failing.start()
        failing.stop()
    assert (tmp_path / "file").read_text() == "mine"


def test_a_stop_takes_the_socket_away(tmp_path: Path) -> None:
    """No file is left, the thread has ended, and a socket that was never started stops as well."""
    received = Received(tmp_path)
    received.socket.start()
    started = time.monotonic()
    received.socket.stop()
    assert time.monotonic() - started < 10
    assert not received.path.exists()
    assert [thread.name for thread in threading.enumerate() if thread.name == "helper-socket"] == []
    HelperSocket(path=tmp_path / "other.sock", receive=received.datagrams.put).stop()
