"""The socket that the in-process helper sends its datagrams to.

The kernel stamps each datagram with the sender's pid as the *receiver* sees it (SO_PASSCRED, unix(7)): a process in a container arrives
with its pid on the host, and only root could report for another process. Anyone on the node may send; belief is the reader's matter.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from peakgate.agent.errors import UsageError
from peakgate.agent.unix_sockets import remove_stale
from peakgate.v1.allocator_report import DEFAULT_SOCKET, MAX_BYTES

HELPER_SOCKET = Path(DEFAULT_SOCKET)
CREDENTIALS = struct.Struct("3i")
"""struct ucred: pid, uid, gid."""
ANCILLARY_BYTES = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(16 * struct.calcsize("i"))
"""Room for the credentials, and for descriptors that somebody sends along: they are closed at once."""
EVERYBODY_MAY_SEND = 0o666

log = structlog.get_logger("peakgate.agent.helper_socket")


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram:
    """What a process sent; the numbers are the kernel's."""

    pid: int
    uid: int
    gid: int
    content: bytes


class HelperSocket:
    """Gives each datagram to `receive`, on a thread of its own. Senders are never held up: what does not fit into the queue, they drop."""

    def __init__(self, *, path: Path = HELPER_SOCKET, receive: Callable[[Datagram], None]) -> None:
        self._path = path
        self._receive = receive
        self._ends: contextlib.ExitStack | None = None
        self.dropped: dict[str, int] = {}
        """Datagrams that were not given on, by reason: credentials, too_long, failed."""

    def start(self) -> None:
        """Makes the socket; raises UsageError when that cannot be. A socket that an earlier agent left is replaced, one in use is not."""
        try:
            source = _bound(self._path)
        except OSError as error:
            raise UsageError(f"no socket {self._path}: {error}", remedy="Name a folder that the agent may write to") from error
        wake, woken = socket.socketpair()
        thread = threading.Thread(target=self._run, args=(source, woken), name="helper-socket", daemon=True)
        self._ends = contextlib.ExitStack()
        for each in (source, wake, woken):
            self._ends.callback(each.close)
        self._ends.callback(self._path.unlink, missing_ok=True)
        self._ends.callback(thread.join)
        self._ends.callback(wake.send, b"x")
        thread.start()

    def stop(self) -> None:
        """Ends the thread and takes the socket away."""
        if self._ends:
            self._ends.close()

    def _run(self, source: socket.socket, woken: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while woken not in {key.fileobj for key, _ in selector.select()}:
                self._take(source)

    def _take(self, source: socket.socket) -> None:
        try:
            content, ancillary, flags, _ = source.recvmsg(MAX_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._drop("failed", problem=str(error))
            return
        _close_descriptors(ancillary)
        credentials = _credentials(ancillary)
        if flags & socket.MSG_TRUNC:
            self._drop("too_long")
        elif credentials is None:
            self._drop("credentials")
        else:
            pid, uid, gid = credentials
            self._give(Datagram(pid=pid, uid=uid, gid=gid, content=content))

    def _give(self, datagram: Datagram) -> None:
        try:
            self._receive(datagram)
        except Exception as error:  # noqa: BLE001 (no sender's datagram may end the agent)
            self._drop("failed", problem=repr(error), pid=datagram.pid)

    def _drop(self, reason: str, **facts: object) -> None:
        if reason not in self.dropped:
            log.warning("datagram dropped", reason=reason, **facts)
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def _bound(path: Path) -> socket.socket:
    remove_stale(path, socket.SOCK_DGRAM)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # before the first datagram can come
        bound.setblocking(False)
        bound.bind(str(path))
        path.chmod(EVERYBODY_MAY_SEND)
    except OSError:
        bound.close()
        raise
    return bound


def _credentials(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int, int] | None:
    """Pid, uid and gid. A pid of 0 is a sender that this pid namespace does not contain."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and len(data) >= CREDENTIALS.size:
            pid, uid, gid = CREDENTIALS.unpack(data[: CREDENTIALS.size])
            return (pid, uid, gid) if pid > 0 else None
    return None


def _close_descriptors(ancillary: list[tuple[int, int, bytes]]) -> None:
    """Whoever sends open files with a datagram shall not fill the agent's table of them."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            size = struct.calcsize("i")
            for (descriptor,) in struct.iter_unpack("i", data[: len(data) - len(data) % size]):
                with contextlib.suppress(OSError):
                    os.close(descriptor)
