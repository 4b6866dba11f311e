"""Delivers what a spool holds, without an agent: before a node is taken down, or from a copy of a spool."""

from __future__ import annotations

import asyncio
import contextlib
from importlib import metadata
from typing import TYPE_CHECKING

import grpc.aio

from peakgate.agent.sender import Sender
from peakgate.agent.spool import Spool
from peakgate.agent.transport import UnaryTransport
from peakgate.agent.wire import NodeIdentity
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

if TYPE_CHECKING:  # absent at run time
    from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceAsyncStub


async def drain(*, spool: Spool, server: str, node: str, timeout_seconds: float) -> int:
    """Sends until all is acknowledged or the time is over; what still waits. Beside a running agent some rows go twice, which merges."""
    identity = NodeIdentity(node=node, agent_version=metadata.version("peakgate"))
    async with grpc.aio.insecure_channel(server) as channel:
        stub: TelemetryServiceAsyncStub = TelemetryServiceStub(channel)
        sender = Sender(spool=spool, transport=UnaryTransport(stub=stub), stub=stub, node=lambda: identity, interval_seconds=1.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await sender.drain_patiently(sleep=asyncio.sleep, given_up=lambda: False)
    return spool.waiting()
