"""One connection of HTTP/1.1 on a stream: h11 parses, and every limit of a request is here.

A request that comes slowly is cut, and so is a connection that was silent for too long. An answer is written at once and whole: in two
parts the second waits for the other side's delayed acknowledgement, forty milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from http import HTTPStatus

import h11

LARGEST_BODY_BYTES = 4 << 20
"""An object has at most 1.5 MiB in etcd (--max-request-bytes); a review holds it, and in an update the old one."""

LARGEST_HEAD_BYTES = 32 << 10
REQUEST_SECONDS, IDLE_SECONDS, WRITE_SECONDS = 3.0, 120.0, 3.0
"""The API server waits no longer than three seconds, and keeps a connection open for the next review."""

CHUNK_BYTES = 1 << 16
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, whole."""

    method: str
    path: str
    content_type: str = ""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What goes back."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON


class CutError(Exception):
    """The connection ends here; with a status the other side is told first."""

    def __init__(self, reason: str = "", status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Connection:
    """Requests and answers by turns."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD_BYTES)

    async def request(self) -> Request | None:
        """The next one, whole; None when the other side has ended. Raises CutError."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                while self._protocol.trailing_data[0] == b"" and not await self._more():
                    return None
        except TimeoutError:
            return None
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._whole()
        except TimeoutError as error:
            raise CutError("too_slow", HTTPStatus.REQUEST_TIMEOUT) from error
        except h11.RemoteProtocolError as error:
            raise CutError("malformed", error.error_status_hint) from error

    async def _whole(self) -> Request | None:
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        headers = {bytes(name): bytes(value) for name, value in head.headers}
        if int(headers.get(b"content-length", b"0")) > LARGEST_BODY_BYTES:
            raise CutError("too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if self._protocol.they_are_waiting_for_100_continue:
            self._writer.write(self._protocol.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        body = bytearray()
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                return None
            body += event.data
            if len(body) > LARGEST_BODY_BYTES:
                raise CutError("too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return Request(
            method=bytes(head.method).decode("ascii"),
            path=bytes(head.target).decode("ascii", "replace").partition("?")[0],
            content_type=headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower(),
            body=bytes(body),
        )

    async def _event(self) -> h11.Event | type[h11.PAUSED] | None:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            if not await self._more():
                return None
        return event  # type: ignore[return-value]  # h11's other sentinel, PAUSED, comes only where requests are sent ahead

    async def _more(self) -> bool:
        """Reads on; False at the end, of which the parser is told."""
        data = await self._reader.read(CHUNK_BYTES)
        self._protocol.receive_data(data)
        return bool(data)

    async def answer(self, response: Response, *, is_last: bool = False) -> None:
        """Writes it in one piece."""
        headers = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
        head = h11.Response(
            status_code=response.status,
            reason=HTTPStatus(response.status).phrase.encode(),
            headers=[*headers, ("Connection", "close")] if is_last else headers,
        )
        parts = [self._protocol.send(event) or b"" for event in (head, h11.Data(data=response.body), h11.EndOfMessage())]
        self._writer.write(b"".join(parts))
        async with asyncio.timeout(WRITE_SECONDS):
            await self._writer.drain()

    async def refuse(self, status: int) -> None:
        """The last answer, where one can still be sent."""
        with contextlib.suppress(h11.LocalProtocolError):
            await self.answer(Response(status=status), is_last=True)

    def begins_anew(self) -> bool:
        """Whether a further request may come on this connection."""
        if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
            return False
        self._protocol.start_next_cycle()
        return True
