"""Whether the service can be reached is known without a review, and a webhook that was ready once stays so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc.aio
import pytest
from tests.bench.programs import free_port

from peakgate.hooks.asking import Service
from peakgate.hooks.kubernetes.readiness import NEVER_JUDGED, Link, Readiness

SOON_SECONDS = 2.0
"""What the help of peakgate_webhook_service_up promises."""


@asynccontextmanager
async def a_server(port: int) -> AsyncIterator[None]:
    """A gRPC server that is connected to and never asked."""
    server = grpc.aio.server()
    server.add_insecure_port(f"localhost:{port}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


async def until_it_is(link: Link, *, up: bool) -> float:
    """The seconds that it took."""
    began = time.monotonic()
    for _ in range(1000):
        if link.is_up is up:
            break
        await asyncio.sleep(0.01)
    return time.monotonic() - began


async def test_a_link_follows_its_service_though_nobody_asks() -> None:
    """Away, there, gone, back: each within two seconds, and a line in the log for each."""
    port = free_port()
    service = Service(f"localhost:{port}")
    told = list[tuple[str, str]]()
    link = Link(channel=service.channel, tell=lambda level, text: told.append((level, text)))
    watching = asyncio.create_task(link.watch())
    try:
        await asyncio.sleep(0.1)
        assert (link.is_up, link.was_up) == (False, False)
        for _ in range(2):
            async with a_server(port):
                assert await until_it_is(link, up=True) < SOON_SECONDS
            assert await until_it_is(link, up=False) < SOON_SECONDS
            assert link.was_up
        away, there = ("error", "the service cannot be reached: it is tried again all the time"), ("info", "the service is reached")
        assert told[:4] == [away, there, away, there]
        assert told[4:] in ([], [away])
    finally:
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        await service.channel.close()


def test_a_webhook_is_ready_once_somebody_could_judge_and_stays_so() -> None:
    """An unready one would be left out by the API server, which then admits in silence."""
    can_judge = False
    readiness = Readiness(can_judge=lambda: can_judge)
    assert readiness.reason() == NEVER_JUDGED
    can_judge = True
    assert readiness.reason() == ""
    can_judge = False
    assert readiness.reason() == ""
