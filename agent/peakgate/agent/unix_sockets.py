"""A unix socket that an agent left behind is taken over; one that is in use, and anything that is no socket, is not touched."""

from __future__ import annotations

import socket
import stat
from pathlib import Path


def remove_stale(path: Path, kind: socket.SocketKind) -> None:
    """Takes away a socket of this kind that nobody reads. Raises OSError for one that is read, and for what is no socket."""
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise FileExistsError("there is something else than a socket")
    with socket.socket(socket.AF_UNIX, kind) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise FileExistsError("another agent reads it")
