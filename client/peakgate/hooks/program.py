"""What every program beside a controller does: says something, finds its service early, runs until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

from peakgate.hooks.asking import Service

BAD_USAGE = 2
"""The exit status when something that was asked for cannot be had."""

ENDING = (signal.SIGTERM, signal.SIGINT)
CONNECT_SECONDS = 2.0


def tell(level: str, text: str) -> None:
    """One line on standard error, which whoever started the program keeps with its time."""
    sys.stderr.write(f"{level}: {text}\n")
    sys.stderr.flush()


async def connect(service: Service | None) -> None:
    """The first question finds a channel that is open already; a service that is away is found later."""
    if service is not None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(service.channel.channel_ready(), CONNECT_SECONDS)


async def told_to_stop() -> None:
    """Returns then."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in ENDING:
        loop.add_signal_handler(number, told.set)
    await told.wait()
