"""What the operator decides about verdicts and cards. Light on purpose: the embedded service starts with it in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_COVERAGE = 0.95
"""α = 0.05 is the admission level that won in the calibration's simulation; an operator may set another."""

CAREFUL_COVERAGE = 0.99
"""α where the calibration is unsure: a young group, an alarm that is open, a version that was not seen. Chosen in the same simulation."""


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
