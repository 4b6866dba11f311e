"""Waiting for what another service does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float) -> None:
    """Waits until `condition` holds. Raises TimeoutError when it does not in time."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - the condition is another service's
            await asyncio.sleep(0.02)
