"""Jittered periods, and the budget of the process lists."""

from __future__ import annotations

from random import Random

import pytest
from tests.unit.agent.builders import H100, SimulatedNode

from peakgate.agent.pace import BUDGET_RATIO, LONGEST_PERIOD_SECONDS, BudgetedPace, Pace
from peakgate.agent.samples import ProcessSample
from peakgate.agent.simulated.library import SimulatedNvml


def a_budgeted_pace() -> BudgetedPace:
    """One second wanted, no jitter."""
    return BudgetedPace(period_seconds=1.0, uniform=lambda low, high: (low + high) / 2)


def test_it_is_due_at_once_and_then_after_its_period() -> None:
    """The jitter is a fifth either way."""
    pace = Pace(period_seconds=10.0, uniform=Random(1).uniform)
    assert pace.is_due(0.0)
    for _ in range(100):
        pace.begin_next(0.0)
        assert 8 <= pace.due_at <= 12
        assert not pace.is_due(7.9)


def test_dear_lists_are_read_less_often_until_they_are_cheap_again() -> None:
    """The period is what keeps the cost at a hundredth of the time, and the wanted one when that is kept anyway."""
    pace = a_budgeted_pace()
    for _ in range(5):
        pace.spend(0.045)
    assert pace.period_seconds == pytest.approx(4.5)
    assert pace.share == pytest.approx(BUDGET_RATIO)
    for _ in range(3):
        pace.spend(0.0001)
    assert pace.period_seconds == 1.0


def test_one_slow_round_moves_nothing() -> None:
    """A machine that did not let the agent run says nothing about the driver."""
    pace = a_budgeted_pace()
    for cost in (0.001, 0.001, 0.001, 2.0):
        pace.spend(cost)
    assert pace.period_seconds == 1.0


def test_processes_are_looked_for_each_minute_whatever_it_costs() -> None:
    """There is a longest period."""
    pace = a_budgeted_pace()
    pace.spend(30.0)
    assert pace.period_seconds == LONGEST_PERIOD_SECONDS


def test_the_sampler_keeps_to_its_budget(simulated: SimulatedNvml) -> None:
    """Eight GPUs whose lists take 4 ms each: about one round in three seconds, and the share of time is a hundredth."""
    gpus = "".join(f"gpu {k} uuid=GPU-{k} {H100}\n" for k in range(8))
    call_time = [0.0]

    def call_clock() -> float:  # asked before and after each list
        call_time[0] += 0.002
        return call_time[0]

    node = SimulatedNode(simulated, gpus, call_clock=call_clock)
    samples = node.run(300)
    rounds = sum(isinstance(sample, ProcessSample) and sample.gpu.uuid == "GPU-0" for sample in samples)
    spent_ratio = rounds * 8 * 0.002 / 300
    assert node.sampler.process_pace.period_seconds == pytest.approx(1.6)
    assert spent_ratio == pytest.approx(BUDGET_RATIO, rel=0.1)
