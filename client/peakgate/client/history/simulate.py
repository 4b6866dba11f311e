"""A history sent to the service, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from peakgate.client.connect import Client
from peakgate.client.errors import InputError, ServiceError
from peakgate.client.history.read import BadLine
from peakgate.v1.calibration_simulation_pb2 import (
    PastAttempt,
    RefusedAttempt,
    SimulateCalibrationRequest,
    SimulateCalibrationResponse,
    SimulationSettings,
)

MESSAGE_BYTES = 1 << 18
"""Of attempts that go into one message, well below what the service takes."""


@dataclass(slots=True)
class Sender:
    """Messages of a history; what is no attempt stays here."""

    settings: SimulationSettings
    bad: list[BadLine] = field(default_factory=list)
    sent: int = 0

    def messages(self, lines: Iterable[PastAttempt | BadLine]) -> Iterator[SimulateCalibrationRequest]:
        """The settings, then the attempts in pieces."""
        message, size_bytes = SimulateCalibrationRequest(settings=self.settings), 0
        for each in lines:
            if isinstance(each, BadLine):
                self.bad.append(each)
                continue
            self.sent += 1
            message.attempts.append(each)
            size_bytes += each.ByteSize()
            if size_bytes > MESSAGE_BYTES:
                yield message
                message, size_bytes = SimulateCalibrationRequest(), 0
        yield message


def simulate(client: Client, settings: SimulationSettings, lines: Iterable[PastAttempt | BadLine]) -> SimulateCalibrationResponse:
    """The service's answer, with the lines that were no attempts among the refused ones. Raises InputError when none can be used."""
    sender = Sender(settings)
    messages = list(sender.messages(lines))  # read here: what gRPC's own thread raised would be lost
    if not sender.sent and sender.bad:
        raise InputError(f"{_none_of(sender)} is an attempt; {_first(sender)}", reason="HISTORY_UNUSABLE")
    try:
        response = client.calibrations.simulate(messages)
    except ServiceError as error:
        if error.reason != "HISTORY_UNUSABLE" or not sender.bad:
            raise
        theirs = error.message.partition("; ")[2] or error.message  # behind how many were sent
        raise InputError(f"{_none_of(sender)} can be used; {_first(sender)}; {theirs}", reason=error.reason) from error
    for bad in sender.bad:
        response.refused.append(RefusedAttempt(line=bad.line, reason=bad.reason, message=bad.message))
    response.refused.sort(key=lambda each: (each.line, each.attempt))
    response.refused_attempts += len(sender.bad)
    return response


def _none_of(sender: Sender) -> str:
    """How many lines there were: what was sent, and what stayed here."""
    return f"none of the {sender.sent + len(sender.bad)} lines"


def _first(sender: Sender) -> str:
    return f"line {sender.bad[0].line}: {sender.bad[0].message}"
