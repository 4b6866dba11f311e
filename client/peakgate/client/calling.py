"""One call of a service, and a list that comes in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import grpc

from peakgate.client.errors import ServiceError

_Answer = TypeVar("_Answer")
_Row = TypeVar("_Row")

LARGEST_PAGE = 1000
"""Rows; the service gives no more at once."""


def called(call: Callable[[], _Answer]) -> _Answer:
    """The answer of a call. Raises ServiceError."""
    try:
        return call()
    except grpc.RpcError as error:
        raise ServiceError.from_call(error) from error


def paged(page: Callable[[int, str], tuple[Iterable[_Row], str]], *, limit: int | None = None) -> list[_Row]:
    """The rows of a list, at most `limit`. `page` is called with a size and a token; it gives rows, and the token of the next page."""
    found: list[_Row] = []
    token = ""
    while limit is None or len(found) < limit:
        rows, token = page(LARGEST_PAGE if limit is None else min(limit - len(found), LARGEST_PAGE), token)
        found.extend(rows)
        if not token:
            break
    return found[:limit]
