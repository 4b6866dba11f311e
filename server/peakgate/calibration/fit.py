"""Observations to a snapshot. A pure function of the set of observations: neither their order nor a repeat changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low

from peakgate.calibration import prior
from peakgate.calibration.curve import product_limit
from peakgate.calibration.level import Node, Score, is_textbook, level_without, nodes_of
from peakgate.calibration.observation import Observation
from peakgate.calibration.snapshot import GroupFacts, Snapshot


def fit(observations: Sequence[Observation], *, learned_by_group: Mapping[str, int], version: str) -> Snapshot:
    """The snapshot of gated observations, each of another prediction.

    `learned_by_group` counts those that were ever learned; the oldest of them may no longer be among the observations.
    """
    scores = [score_of(observation) for observation in observations]
    nodes = nodes_of(scores)
    pooled = [score for score in scores if not is_textbook(score.group)]
    curve = product_limit((_standardised(score, nodes), score.exact) for score in pooled)
    facts = {group: _facts(rows, learned_by_group[group]) for group, rows in _by_group(observations).items()}
    return Snapshot(version=version, nodes=nodes, facts=facts, curve=curve)


def score_of(observation: Observation) -> Score:
    """How far the need lies from the requirement, in spreads."""
    distance_bytes = observation.need_bytes - observation.required_bytes
    value = distance_bytes / prior.spread_bytes(observation.required_bytes)
    return Score(group=observation.group, value=value, exact=observation.upper_bytes is not None)


def _standardised(score: Score, nodes: Mapping[str, Node]) -> float:
    # Left out of its own level and width, a score stands where a new job of its group would have stood (jackknife:
    # Barber et al., Annals of Statistics 49, 2021).
    others = nodes[score.group].exact_rows - score.exact
    return (score.value - level_without(nodes, score)) / prior.width(others)


def _by_group(observations: Iterable[Observation]) -> dict[str, list[Observation]]:
    by_group: dict[str, list[Observation]] = {}
    for observation in observations:
        by_group.setdefault(observation.group, []).append(observation)
    return by_group


def _facts(rows: Sequence[Observation], learned: int) -> GroupFacts:
    return GroupFacts(
        observations=learned,
        typical_required_bytes=median_low(row.required_bytes for row in rows),
        median_ratio=median_low(row.need_bytes / row.required_bytes for row in rows),
    )
