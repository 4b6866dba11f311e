"""The margin as it is stored: the calibrator, and what people are shown of its groups. Pure."""

from __future__ import annotations

import json

from peakgate.calibration import Calibrator, Observation, Outcome
from peakgate.server.groups import Groups, GroupSummary
from peakgate.server.policy import DEFAULT_COVERAGE


class Margin:
    """A calibrator with the newest rows of its groups."""

    def __init__(self, calibrator: Calibrator, groups: Groups | None = None) -> None:
        self.calibrator = calibrator
        self._groups = groups if groups is not None else Groups()

    @property
    def version(self) -> str:
        """That of the calibrator: it moves with every observation that was taken in, learned or kept out."""
        return self.calibrator.version

    @property
    def newest(self) -> tuple[float, str]:
        """The place of the newest observation that was taken in: what comes before it comes late."""
        return self.calibrator.newest

    def learn(self, observation: Observation) -> Outcome:
        """Takes an observation in, or keeps it out and says why."""
        outcome = self.calibrator.learn(observation)
        if outcome.learned:
            self._groups.see(observation)
        return outcome

    def copy(self) -> Margin:
        """An equal one that learns for itself."""
        return Margin(Calibrator.from_state(self.calibrator.state()), Groups.from_state(self._groups.state()))

    def groups(self) -> tuple[GroupSummary, ...]:
        """The groups that were observed, by name, with their margins at the default coverage."""
        return self._groups.summaries(self.calibrator.snapshot(), coverage=DEFAULT_COVERAGE)

    def text(self) -> str:
        """All of it, as the store holds it."""
        return json.dumps({"calibrator": self.calibrator.state(), "groups": self._groups.state()}, allow_nan=False, separators=(",", ":"))


def margin_from(text: str) -> Margin:
    """The margin whose text that was. Raises ValueError for one that this version cannot read."""
    try:
        state = json.loads(text)
        return Margin(Calibrator.from_state(state["calibrator"]), Groups.from_state(state["groups"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the stored margin cannot be read: {error!r}") from error
