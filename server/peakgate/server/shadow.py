"""The shadow: a second margin that learns what the active one learns, is scored beside it, and answers nobody. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from peakgate.calibration import Observation, Outcome, Snapshot, Trial
from peakgate.calibration.calibrator import OUT_OF_ORDER
from peakgate.server.errors import field_error
from peakgate.server.groups import groups_json
from peakgate.server.margin import Margin, margin_from
from peakgate.server.store.records import SHADOW, CalibrationRow


@dataclass(slots=True, kw_only=True)
class Shadow:
    """`sequence` is its place in the store, 0 before it has one. `behind`: it has not learned all that the active one has.

    A row that comes late is learned by both and scored by neither: what either knew when it ended is not known any more.
    """

    margin: Margin
    trial: Trial
    sequence: int = 0
    version: str = ""
    behind: bool = False
    ranges: tuple[tuple[int, int], ...] = ()
    """The versions whose observations it has learned, as (first, last)."""
    edges: tuple[int, ...] = ()

    def copy(self) -> Shadow:
        """An equal one that learns for itself."""
        return replace(self, margin=self.margin.copy(), trial=Trial.from_state(self.trial.state()))

    def beside(self, active: Margin, observation: Observation) -> Outcome:
        """Both learn an observation, after both were asked. Returns what became of it in the active one."""
        bounds = self._bounds(active.calibrator.snapshot(), observation)
        outcome = active.learn(observation)
        if outcome.reason == OUT_OF_ORDER:
            self.behind = True
            return outcome
        self.take(observation)
        if outcome.learned:
            self.trial.score(observation, *bounds)
        return outcome

    def score(self, against: Snapshot, observation: Observation) -> None:
        """Is asked, and then learns, beside one that stays as it is."""
        bounds = self._bounds(against, observation)
        if self.take(observation).learned:
            self.trial.score(observation, *bounds)

    def take(self, observation: Observation) -> Outcome:
        """Learns an observation by itself."""
        outcome = self.margin.learn(observation)
        self.behind = self.behind or outcome.reason == OUT_OF_ORDER
        return outcome

    def row(self, *, created_us: int) -> CalibrationRow:
        """It as the store holds it."""
        groups = self.margin.groups()
        return CalibrationRow(
            sequence=self.sequence,
            version=self.version or self.margin.calibrator.epoch,
            state="shadow",
            created_us=created_us,
            observations=sum(group.observations for group in groups),
            groups=groups_json(groups),
            body=self.margin.text(),
            trial=self.trial_text(),
        )

    def trial_text(self) -> str:
        """What it has shown, as the store holds it."""
        told = {"ranges": self.ranges, "edges": self.edges, "trial": self.trial.state(), "behind": self.behind}
        return json.dumps(told)

    def _bounds(self, active: Snapshot, observation: Observation) -> tuple[int, int]:
        """A row that cannot be used at all is not asked about."""
        subject = observation.subject
        if subject.required_bytes <= 0:
            return 0, 0
        return self.trial.bounds(subject, active, self.margin.calibrator.snapshot())


def shadow_from(row: CalibrationRow, *, active_sequence: int) -> Shadow:
    """The shadow whose row that was, beside an active version. Raises ValueError for one that this version cannot read."""
    try:
        told = json.loads(row.trial)
        return Shadow(
            margin=margin_from(row.body),
            trial=Trial.from_state(told["trial"]),
            sequence=row.sequence,
            version=row.version,
            behind=bool(told["behind"]) or told["known"] != active_sequence,
            ranges=tuple((int(first), int(last)) for first, last in told["ranges"]),
            edges=tuple(int(place) for place in told["edges"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the stored shadow cannot be read: {error!r}") from error


def trial_of(row: CalibrationRow) -> tuple[Trial, bool] | None:
    """What a version has shown as a shadow, and whether it is behind; None when it never was one."""
    if not row.trial:
        return None
    told = json.loads(row.trial)
    return Trial.from_state(told["trial"]), bool(told["behind"])


def in_words(trial: Trial) -> str:
    """A trial in one line for a person."""
    return ", ".join(
        f"{rule.name} {rule.figure:.4g} ({'at least' if rule.at_least else 'at most'} {rule.limit:.4g})" for rule in trial.rules()
    )


def check_is_whole(row: CalibrationRow) -> None:
    """Raises FIELD_INVALID for a shadow that has ended: it has stopped somewhere between two versions, and nothing goes on from there."""
    if row.state == "retired" and row.kind == SHADOW:
        raise field_error("version", f"{row.version} is a shadow that has ended; start one anew")
