"""Whether the service can be reached, as its channel knows it, and whether reviews should come here.

An unready webhook is one that the API server does not find: it admits in silence (failurePolicy Ignore). A ready one that nobody helps to
judge says "not checked" to the submitter, to the audit log and to the metrics. So readiness only keeps reviews away until this webhook
could judge once; what happens to the service later is told by metrics, never by taking the webhook out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import grpc
import grpc.aio

NEVER_JUDGED = "neither the service nor the one beside the webhook could judge since the start"


@dataclass(kw_only=True)
class Link:
    """The channel to the service: `is_up` follows its connection, which it keeps open or tries to, whether reviews come or not. What
    hangs with its connection open is found by the calls that fail. `tell`: whoever reads the log first is told when it goes and comes."""

    channel: grpc.aio.Channel
    tell: Callable[[str, str], None]
    is_up: bool = field(default=False, init=False)
    was_up: bool = field(default=False, init=False)
    _is_missed: bool = field(default=False, init=False)

    async def watch(self) -> None:
        """Follows it for ever."""
        while True:
            state = self.channel.get_state(try_to_connect=True)
            self.is_up = state is grpc.ChannelConnectivity.READY
            self.was_up = self.was_up or self.is_up
            self._note(state)
            await self.channel.wait_for_state_change(state)

    def _note(self, state: grpc.ChannelConnectivity) -> None:
        """Once for each time; a connection that rested and is made anew is no news."""
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE and not self._is_missed:
            self._is_missed = True
            self.tell("error", "the service cannot be reached: it is tried again all the time")
        elif self.is_up and self._is_missed:
            self._is_missed = False
            self.tell("info", "the service is reached")


@dataclass(kw_only=True)
class Readiness:
    """`can_judge`: whether somebody could now. Once it is ready it stays so."""

    can_judge: Callable[[], bool]
    is_reached: bool = field(default=False, init=False)

    def reason(self) -> str:
        """Why no review should come here yet; empty when it should."""
        self.is_reached = self.is_reached or self.can_judge()
        return "" if self.is_reached else NEVER_JUDGED
