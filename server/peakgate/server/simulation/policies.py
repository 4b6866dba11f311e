"""The policies that are compared, from the words that name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.policy import CAREFUL_COVERAGE, Policy, coverage_of_costs

FIELD = "settings.policies"
FORMS = "fixed:PERCENT, alpha:A, alpha:A/CAREFUL, costs:OOM:REJECTION or site"

USUAL = ("fixed:10", "fixed:15", "fixed:20", "alpha:0.01", "alpha:0.02", "alpha:0.05", "alpha:0.10", "alpha:0.05/0.01")
"""Rules of thumb and the levels around the default one; what the site runs and its costs come behind them."""

MOST_POLICIES = 20
"""Each replays the whole history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A fixed margin as a part of the card, or the calibration under a policy."""

    text: str
    title: str
    fixed_ratio: float = 0.0
    policy: Policy | None = None


def candidates(texts: Sequence[str], *, site: Policy, oom_cost: float, rejection_cost: float) -> list[Candidate]:
    """Those that were asked for, or the usual ones with the site's own. Raises FIELD_INVALID."""
    asked = list(dict.fromkeys(texts)) or [*USUAL, f"costs:{oom_cost:g}:{rejection_cost:g}", "site"]
    if len(asked) > MOST_POLICIES:
        raise field_error(FIELD, f"names {len(asked)} policies; at most {MOST_POLICIES} are compared at a time")
    return [candidate(text, site=site) for text in asked]


def candidate(text: str, *, site: Policy) -> Candidate:
    """The policy that a word names; the operator's reserve is kept free under each of them. Raises FIELD_INVALID."""
    kind, _, rest = text.partition(":")
    if kind == "fixed":
        ratio = _number(text, rest.removesuffix("%"), least=0.0, most=100.0) / 100
        return Candidate(text=text, title=f"{ratio * 100:g} % of the card", fixed_ratio=ratio)
    if kind == "alpha":
        first, slash, second = rest.partition("/")
        alpha = _alpha(text, first)
        careful = _alpha(text, second) if slash else alpha
        return Candidate(text=text, title=_levels(alpha, careful), policy=_policy(site, alpha, careful))
    if kind == "costs":
        oom, _, rejection = rest.partition(":")
        alpha = 1 - _coverage(text, _number(text, oom, least=0.0), _number(text, rejection, least=0.0))
        careful = min(alpha, 1 - CAREFUL_COVERAGE)
        return Candidate(text=text, title=f"an OOM costs {oom}, a rejection {rejection}", policy=_policy(site, alpha, careful))
    if text == "site":
        return Candidate(text=text, title="what this site runs now", policy=site)
    raise _bad(text)


def _coverage(text: str, oom_cost: float, rejection_cost: float) -> float:
    if not (oom_cost > 0 and rejection_cost > 0):
        raise _bad(text)
    try:
        return coverage_of_costs(oom_cost, rejection_cost)
    except ValueError as error:
        raise _bad(text) from error


def _policy(site: Policy, alpha: float, careful: float) -> Policy:
    return Policy(coverage=1 - alpha, careful_coverage=1 - careful, operator_reserve_bytes=site.operator_reserve_bytes)


def _levels(alpha: float, careful: float) -> str:
    return f"α = {alpha * 100:g} %" + (f", {careful * 100:g} % where unsure" if careful != alpha else "")


def _alpha(text: str, word: str) -> float:
    alpha = _number(text, word, least=0.0, most=1.0)
    if not 0 < alpha < 1:
        raise _bad(text)
    return alpha


def _number(text: str, word: str, *, least: float, most: float = 1e12) -> float:
    try:
        number = float(word)
    except ValueError as error:
        raise _bad(text) from error
    if not least <= number <= most:
        raise _bad(text)
    return number


def _bad(text: str) -> PeakgateError:
    return field_error(FIELD, f"{text[:64]!r} names no policy; state {FORMS}")
