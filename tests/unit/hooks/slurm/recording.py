"""A gate that notes what it is asked and answers with what it is given."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Recorded:
    """Requests in their order; `reply` is the text of every answer."""

    path: Path
    reply: str
    requests: list[bytes] = field(default_factory=list)

    @property
    def last(self) -> dict[str, object]:
        """The last request, parsed."""
        parsed: dict[str, object] = json.loads(self.requests[-1].decode("utf-8", "surrogateescape"))
        return parsed


@contextlib.contextmanager
def recording_gate(path: Path, reply: str = "ALLOW 0123abcd\nEND\n") -> Iterator[Recorded]:
    """Listens at `path` while the block runs."""
    found = Recorded(path, reply)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(16)
        thread = threading.Thread(target=_serve, args=(listening, found), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listening: socket.socket, found: Recorded) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as stream:
            found.requests.append(stream.readline())
            with contextlib.suppress(OSError):
                connection.sendall(found.reply.encode())
