"""The checks of the agent on this machine's NVML, as lines of the check-up."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.client.doctor.check import Check, State
from peakgate.client.errors import InputError
from peakgate.client.extras import extra


def selftest_checks(simulate: str | None) -> Iterator[Check]:
    """Asks NVML what the agent relies on; `simulate` names a scenario of the simulated NVML. Raises InputError for a bad scenario."""
    with extra("agent"):
        from peakgate.agent.errors import AgentError
        from peakgate.agent.selftest.run import selftest
    try:
        findings = selftest(simulate)
    except AgentError as error:
        raise InputError(str(error), reason="SIMULATION_IMPOSSIBLE") from error
    for each in findings:
        yield Check(name=each.name, state=State(each.state), found=each.found, remedy=each.remedy)
