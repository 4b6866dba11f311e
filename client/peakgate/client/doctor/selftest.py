"""The checks of the agent on this machine's NVML, as lines of the check-up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from peakgate.client.doctor.check import Check, State
from peakgate.client.errors import InputError
from peakgate.client.extras import extra

STATE_OF_OUTCOME = {"passed": State.ok, "noted": State.note, "failed": State.bad}
"""By the words of peakgate.agent.selftest.finding.Outcome."""


class Finding(Protocol):
    """What the agent found (peakgate.agent.selftest.finding.Finding)."""

    @property
    def name(self) -> str:
        """What was looked at."""

    @property
    def outcome(self) -> str:
        """A word of STATE_OF_OUTCOME."""

    @property
    def seen(self) -> str:
        """What was seen."""

    @property
    def remedy(self) -> str:
        """What to do about it; empty when nothing is."""


def checks_of(findings: Iterable[Finding]) -> Iterator[Check]:
    """The agent's findings as checks."""
    for each in findings:
        yield Check(name=each.name, state=STATE_OF_OUTCOME[each.outcome], found=each.seen, remedy=each.remedy)


def selftest_checks(simulate: str | None) -> Iterator[Check]:
    """Asks NVML what the agent relies on; `simulate` names a scenario of the simulated NVML. Raises InputError for a bad scenario."""
    with extra("agent"):
        from peakgate.agent.errors import AgentError
        from peakgate.agent.selftest.run import selftest
    try:
        findings = selftest(simulate)
    except AgentError as error:
        raise InputError(str(error), reason="SIMULATION_IMPOSSIBLE") from error
    yield from checks_of(findings)
