"""The process of `beside.py`: prints where its service listens, and ends when its standard input does."""

from __future__ import annotations

import signal
import sys

from peakgate.client.connect import embedded_target


def main() -> None:
    """Serves until the hook lets go of the pipe. The hook's own signals are not this process's: Ctrl-C goes to both."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with embedded_target() as target:
        sys.stdout.write(f"{target}\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
