"""Gates that misbehave, for the tests of the hook: `python -m tests.slurm_gates SOCKET MODE`, a process that can be stopped or killed.

A connection is answered with `reply` after its first line; or never (hang), byte by byte (drip), late (slow), with what is no answer
(garbage), with one that has no end (flood), or with nothing but an end of file (mute).
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADMITTED = "ALLOW 0123abcd\nSAY peakgate: needs 60.0 GB of 80.0 GB\nEND\n"
REFUSED = "DENY gres\nSAY peakgate: needs 90.0 GB, the card has 80.0 GB\nSAY peakgate: micro_batch_size 4 -> 2 fits\nEND\n"
MODES = ("answer", "refuse", "hang", "drip", "slow", "garbage", "flood", "mute", "early")
DRIP_SECONDS, SLOW_SECONDS = 0.05, 1.0


@contextlib.contextmanager
def misbehaving_gate(path: Path, mode: str) -> Iterator[subprocess.Popen[bytes]]:
    """A gate of that mode in a process of its own, listening when the block begins."""
    arguments = [sys.executable, "-I", str(Path(__file__).resolve()), str(path), mode]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def serve(path: str, mode: str) -> None:
    """Serves until it is killed."""
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(128)
        print("listening", flush=True)
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_answer, args=(connection, mode), daemon=True).start()


def _answer(connection: socket.socket, mode: str) -> None:
    with connection, contextlib.suppress(OSError):
        if mode != "early":
            connection.makefile("rb").readline()
        if mode == "hang":
            time.sleep(3600)
        elif mode == "slow":
            time.sleep(SLOW_SECONDS)
        elif mode == "drip":
            for byte in ADMITTED.encode():
                connection.sendall(bytes([byte]))
                time.sleep(DRIP_SECONDS)
        replies = {"refuse": REFUSED.encode(), "garbage": os.urandom(300), "flood": b"x" * (1 << 20), "mute": b"", "early": b"ALLOW \n"}
        connection.sendall(replies.get(mode, ADMITTED.encode()))


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
