"""What the operator decides about verdicts and cards. Light on purpose: the embedded service starts with it in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_COVERAGE = 0.95
"""α = 0.05 is the admission level that won in the calibration's simulation; an operator may set another."""

CAREFUL_COVERAGE = 0.99
"""α where the calibration is unsure: a young group, an alarm that is open, a version that was not seen. Chosen in the same simulation."""

DEFAULT_TRIES_PER_DAY = 3
"""Rejected jobs that a user may run all the same: enough to go on working where the service is wrong, and to show it that it is."""


def coverage_of_costs(oom_cost: float, rejection_cost: float) -> float:
    """The coverage under which a verdict costs least, when a job that runs out of memory costs one and a job rejected in vain the other.

    Admitting costs p_oom · oom_cost, rejecting (1 - p_oom) · rejection_cost: rejecting is cheaper where p_oom passes
    1 / (1 + oom_cost / rejection_cost), which is what the bound leaves (Elkan, "The foundations of cost-sensitive learning", IJCAI 2001).
    Raises ValueError where the two are so far apart that no bound could hold.
    """
    coverage = 1 / (1 + rejection_cost / oom_cost)
    if not 0 < coverage < 1:
        raise ValueError("the costs lie too far apart: their coverage is 0 or 1")
    return coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`coverage` is the probability with which the bound covers the need, and `careful_coverage` the one where the calibration is unsure
    and the operator's is lower; the reserve is kept free on every card.

    `gpu_order`: catalogue names of the cards that are on offer, cheapest first; empty: the operator did not say.
    """

    coverage: float = DEFAULT_COVERAGE
    careful_coverage: float = CAREFUL_COVERAGE
    operator_reserve_bytes: int = 0
    gpu_order: tuple[str, ...] = ()
    tries_per_day: int = DEFAULT_TRIES_PER_DAY
    """Rejected jobs that each user may run all the same in 24 hours; 0: none."""
