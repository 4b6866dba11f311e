"""One call of a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import grpc

from peakgate.client.errors import ServiceError

_Answer = TypeVar("_Answer")


def called(call: Callable[[], _Answer]) -> _Answer:
    """The answer of a call. Raises ServiceError."""
    try:
        return call()
    except grpc.RpcError as error:
        raise ServiceError.from_call(error) from error
