"""The answer to a simulation."""

from __future__ import annotations

from tests.unit.server.conftest import MODEL
from tests.unit.server.simulation.attempts import a_past

from peakgate.server.policy import Policy
from peakgate.server.simulation.past import Truth
from peakgate.server.simulation.policies import candidates
from peakgate.server.simulation.result import Terms, simulate
from peakgate.v1.calibration_simulation_pb2 import SimulateCalibrationResponse

HISTORY = [a_past(0), a_past(1, need_gb=81, required_gb=60), a_past(2, need_gb=66, required_gb=67), a_past(3, truth=Truth.UNKNOWN)]


def simulated(*texts: str, oom_cost: float = 19.0) -> SimulateCalibrationResponse:
    """The four jobs under these policies."""
    chosen = candidates(texts, site=Policy(), oom_cost=oom_cost, rejection_cost=1.0)
    return simulate(HISTORY, chosen, Terms(override_share=0.05, oom_cost=oom_cost, rejection_cost=1.0), MODEL)


def test_the_policy_that_costs_least_is_marked() -> None:
    """10 % admits the job that dies and the one of 67 GB, 30 % neither: what is cheaper depends on the costs."""
    dear, cheap = (simulated("fixed:10", "fixed:30", oom_cost=cost).policies for cost in (19.0, 0.5))
    assert [(each.admitted_ooms, each.right_rejections, each.false_rejections) for each in dear] == [(1, 0, 0), (0, 1, 1)]
    assert [(each.cost, each.cheapest) for each in dear] == [(19.0, False), (1.0, True)]
    assert [(each.cost, each.cheapest) for each in cheap] == [(0.5, True), (1.0, False)]


def test_every_job_is_counted_once() -> None:
    """Under each policy the six counts sum to the jobs."""
    answer = simulated()
    assert (answer.attempts, answer.ooms, answer.unknown) == (4, 1, 1)
    for each in answer.policies:
        rejected = each.right_rejections + each.false_rejections + each.rejected_unknown
        assert (each.jobs, each.admitted + rejected) == (4, 4), each.policy


def test_equal_policies_under_two_names_give_equal_lines() -> None:
    """The default pair is what a site runs that chose nothing, and what costs of 19 to 1 ask for."""
    found = {each.policy: each for each in simulated("alpha:0.05/0.01", "costs:19:1", "site").policies}
    kept = [(each.admitted, each.unused_bytes, each.learned) for each in found.values()]
    assert len(kept) == 3
    assert len(set(kept)) == 1


def test_what_the_figures_cannot_say_is_said() -> None:
    """Jobs that never ran, the closed loop with its tries, jobs that were stopped early."""
    notes = " ".join(simulated("site").notes)
    for words in ("holds the jobs that ran", "5% of those that it rejects", "of 1 attempts nobody knows", "let more than 1 jobs run out"):
        assert words in notes
    for words in ("without submitted_at", "did not trust itself", "cannot be about"):
        assert words not in notes
