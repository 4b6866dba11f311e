"""Who asks: a hook says so in the user agent of its calls, so that the service counts by caller without a field for it."""

from __future__ import annotations

from functools import lru_cache

GRPC, HTTP, SLURM, KUBERNETES = "grpc", "http", "slurm", "kubernetes"
CALLERS = (GRPC, HTTP, SLURM, KUBERNETES)
"""A client that is no hook counts by the door it comes through."""

_AGENT = "peakgate-"


def user_agent(caller: str) -> tuple[str, str]:
    """The option of a gRPC channel that names the caller."""
    return "grpc.primary_user_agent", _AGENT + caller


@lru_cache(maxsize=64)
def caller_of(agent: str) -> str:
    """The caller of a gRPC call with this user agent."""
    if not agent.startswith(_AGENT):
        return GRPC
    word = agent.removeprefix(_AGENT).partition(" ")[0]
    return word if word in CALLERS else GRPC
