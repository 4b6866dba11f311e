"""Who asks, by the user agent of a call."""

from __future__ import annotations

import pytest

from peakgate.v1.callers import CALLERS, caller_of, user_agent


@pytest.mark.parametrize("caller", CALLERS)
def test_a_caller_is_known_again(caller: str) -> None:
    """gRPC puts its own name behind that of the channel's option."""
    option, value = user_agent(caller)
    assert option == "grpc.primary_user_agent"
    assert caller_of(f"{value} grpc-python/1.80.0 (linux; chttp2)") == caller


@pytest.mark.parametrize("agent", ["", "grpc-python-asyncio/1.80.0", "peakgate-fax grpc", "curl/8"])
def test_anybody_else_came_by_grpc(agent: str) -> None:
    """A word that is on no list makes no series."""
    assert caller_of(agent) == "grpc"
