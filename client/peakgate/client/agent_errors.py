"""The agent's errors as the command's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.extras import extra


@contextmanager
def agent_part() -> Iterator[None]:
    """Imports and calls of the agent. Raises PeakgateError: 2 for what it was told, 4 when nobody answers."""
    with extra("agent"):
        from peakgate.agent.errors import AgentError, ServiceUnavailableError
    try:
        with extra("agent"):
            yield
    except ServiceUnavailableError as error:
        raise PeakgateError(str(error), code="UNAVAILABLE", reason="AGENT_UNAVAILABLE") from error
    except AgentError as error:
        raise InputError(str(error), reason="USAGE") from error
