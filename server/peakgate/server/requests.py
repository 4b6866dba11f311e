"""Which request ids may have been answered before: a Bloom filter, so that a new id needs no look into the database."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable

from peakgate.server.errors import field_error

BITS = 1 << 23
"""1 MiB: with a million ids kept, 2 % of new ids are looked up in vain."""

HASHES = 4


class SeenRequests:
    """Never forgets an id; may take a new one for known, which only costs a look into the database."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._bits = bytearray(BITS // 8)
        for request_id in known:
            self.add(request_id)

    def add(self, request_id: str) -> None:
        """Remembers an id."""
        for position in _positions(request_id):
            self._bits[position >> 3] |= 1 << (position & 7)

    def __contains__(self, request_id: str) -> bool:
        """False: certainly new."""
        return all(self._bits[position >> 3] & (1 << (position & 7)) for position in _positions(request_id))


def _positions(request_id: str) -> tuple[int, ...]:
    digest = hashlib.blake2b(request_id.encode(), digest_size=4 * HASHES).digest()
    return tuple(int.from_bytes(digest[4 * index : 4 * index + 4], "big") % BITS for index in range(HASHES))


def check_request_id(request_id: str) -> None:
    """Raises FIELD_INVALID for an id that is no UUID: a counter or a job's name would repeat by accident."""
    try:
        uuid.UUID(request_id)
    except ValueError as error:
        raise field_error("request_id", f"{request_id[:64]!r} is no UUID") from error
