"""Datagrams to the agent of this node: never waits, never raises, counts what nobody took."""

from __future__ import annotations

import os
import socket

from peakgate.v1.allocator_report import DEFAULT_SOCKET, SOCKET_VARIABLE


class Courier:
    """A unix datagram socket, opened at the first datagram and again after a fork. The agent may come, go and come back."""

    def __init__(self, *, path: str | None = None) -> None:
        self._path = path or os.environ.get(SOCKET_VARIABLE) or DEFAULT_SOCKET
        self._socket: socket.socket | None = None
        self._pid = 0
        self.sent = 0
        self.dropped = 0
        """Datagrams that nobody took: no agent, or one that is behind."""

    def send(self, datagram: bytes) -> bool:
        """Whether the kernel took it."""
        try:
            self._own_socket().sendto(datagram, self._path)
        except OSError:
            self.dropped += 1
            return False
        self.sent += 1
        return True

    def close(self) -> None:
        """Gives the descriptor back; the next datagram opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _own_socket(self) -> socket.socket:
        """This process's own: a forked child shares no descriptor with its parent."""
        if self._socket is None or self._pid != os.getpid():
            self.close()
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._pid = os.getpid()
        return self._socket
