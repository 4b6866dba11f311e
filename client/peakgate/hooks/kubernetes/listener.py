"""Listens for one API server and for probes: connections side by side, so many and no more, each cut when its handshake is slow."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from peakgate.hooks.kubernetes.http_connection import WRITE_SECONDS, Connection, CutError, Request, Response

HANDSHAKE_SECONDS, GOODBYE_SECONDS = 3.0, 1.0
"""Of TLS: the API server waits no longer than three seconds."""

MOST_CONNECTIONS, MOST_WAITING = 512, 256

Handle = Callable[[Request], Awaitable[Response]]
Refused = Callable[[str], None]


@asynccontextmanager
async def listening(
    host: str, port: int, handle: Handle, refused: Refused, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Sequence[int]]:
    """Serves while the block runs; the ports. Requests under way are answered before it ends. Raises OSError."""
    connections = _Connections(handle, refused)
    server = await asyncio.start_server(
        connections.serve,
        host or None,
        port,
        ssl=tls,
        backlog=MOST_WAITING,
        ssl_handshake_timeout=HANDSHAKE_SECONDS if tls is not None else None,
        ssl_shutdown_timeout=GOODBYE_SECONDS if tls is not None else None,
    )
    try:
        yield [each.getsockname()[1] for each in server.sockets]
    finally:
        server.close()
        await connections.finish()


class _Connections:
    def __init__(self, handle: Handle, refused: Refused) -> None:
        self._handle = handle
        self._refused = refused
        self._serving: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()

    async def finish(self) -> None:
        """Lets those that answer finish, and cuts those that wait."""
        for task in self._serving - self._answering:
            task.cancel()
        if self._serving:
            await asyncio.wait(tuple(self._serving), timeout=WRITE_SECONDS)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs has one
        self._serving.add(task)
        try:
            if len(self._serving) > MOST_CONNECTIONS:
                raise CutError("too_many")  # noqa: TRY301 - ends as every other cut does
            await self._requests(Connection(reader, writer), task)
        except CutError as error:
            if error.reason:
                self._refused(error.reason)
        except (OSError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()

    async def _requests(self, connection: Connection, task: asyncio.Task[None]) -> None:
        while True:
            try:
                request = await connection.request()
            except CutError as error:
                if error.status:
                    await connection.refuse(error.status)
                raise
            if request is None:
                return
            self._answering.add(task)
            try:
                await connection.answer(await self._handle(request))
            finally:
                self._answering.discard(task)
            if not connection.begins_anew():
                return
