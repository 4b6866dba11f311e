"""What ends the agent from outside."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

ENDING = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def signals(on_signal: Callable[[], None]) -> Iterator[None]:
    """Calls `on_signal` in the event loop while the block runs. Only a program's main thread can listen; in another nothing is heard."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in ENDING:
            loop.remove_signal_handler(number)
