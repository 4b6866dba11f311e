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
        from peakgate.agent.selftest.finding import Outcome
        from peakgate.agent.selftest.run import selftest
    states = {Outcome.passed: State.ok, Outcome.noted: State.note, Outcome.failed: State.bad}
    try:
        findings = selftest(simulate)
    except AgentError as error:
        raise InputError(str(error), reason="SIMULATION_IMPOSSIBLE") from error
    for each in findings:
        yield Check(name=each.name, state=states[each.outcome], found=each.seen, remedy=each.fix)
