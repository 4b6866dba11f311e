"""The gate's socket: who may ask, how much, and for how long."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import stat
import struct
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from peakgate.hooks.slurm.wire import MOST_REQUEST_BYTES

READ_SECONDS = 1.0
"""The hook gives up after a quarter of a second."""
MOST_CONNECTIONS = 256
BACKLOG = 128
MODE = 0o660
CREDENTIALS = struct.Struct("3i")
"""pid, uid and gid of the peer (unix(7), SO_PEERCRED)."""

Answer = Callable[[bytes], Awaitable[bytes]]


class SocketError(Exception):
    """A socket that cannot be had, in words for an operator."""


@dataclass(kw_only=True)
class Peers:
    """Answers one line a connection, of users in `allowed` only. `refuse` is told why a connection is cut."""

    answer: Answer
    allowed: frozenset[int]
    refuse: Callable[[str], None]
    read_seconds: float = READ_SECONDS
    _open: int = field(default=0, init=False)
    _idle: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._idle.set()

    async def finish(self, seconds: float) -> None:
        """Waits for the requests that are under way."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, which is closed behind its answer."""
        self._open += 1
        self._idle.clear()
        try:
            if (line := await self._line(reader, writer)) is not None:
                writer.write(await self.answer(line))
                await asyncio.wait_for(writer.drain(), self.read_seconds)
        except (ConnectionError, TimeoutError):
            self.refuse("gone")
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(writer.wait_closed(), self.read_seconds)
            self._open -= 1
            if not self._open:
                self._idle.set()

    async def _line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        """The request; None of a connection that is cut."""
        if self._open > MOST_CONNECTIONS or peer_of(writer) not in self.allowed:
            self.refuse("too_many" if self._open > MOST_CONNECTIONS else "not_allowed")
            return None
        try:
            return await _read(reader, self.read_seconds)
        except _CutError as cut:
            self.refuse(str(cut))
            return None


class _CutError(Exception):
    """A connection that gets no answer; why, in one word."""


async def _read(reader: asyncio.StreamReader, seconds: float) -> bytes | None:
    """A line; None of somebody who only looked whether the gate is there."""
    try:
        return await asyncio.wait_for(reader.readuntil(b"\n"), seconds)
    except asyncio.LimitOverrunError as error:
        raise _CutError("too_long") from error
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise _CutError("cut_off") from error
    except TimeoutError as error:
        raise _CutError("slow") from error


def peer_of(writer: asyncio.StreamWriter) -> int:
    """The user at the other end."""
    connection: socket.socket = writer.get_extra_info("socket")
    return int(CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[1])


def allowed_users(names: Iterable[str]) -> frozenset[int]:
    """Numbers of root, of this process's user, and of those named. Raises SocketError for a name that nobody has."""
    found = {0, os.geteuid()}
    for name in names:
        try:
            found.add(int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid)
        except KeyError as error:
            raise SocketError(f"no user is called {name}") from error
    return frozenset(found)


async def listen(path: Path, peers: Peers) -> asyncio.Server:
    """A server at `path`; a socket that a dead gate left is replaced. Raises SocketError."""
    try:
        if _is_socket(path):
            await _check_dead(path)
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - before anything is served
        server = await asyncio.start_unix_server(peers.handle, path, limit=MOST_REQUEST_BYTES, backlog=BACKLOG)
        path.chmod(MODE)  # noqa: ASYNC240 - the same
    except OSError as error:
        raise SocketError(f"{path}: {error.strerror or error}") from error
    return server


def _is_socket(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise SocketError(f"{path} is no socket; remove it, or name another with --socket")
    return True


async def _check_dead(path: Path) -> None:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_unix_connection(path), 1.0)
    except (ConnectionError, TimeoutError, FileNotFoundError):
        return
    writer.close()
    raise SocketError(f"another gate answers at {path}")
