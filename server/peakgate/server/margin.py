"""The margin as it is stored: the calibrator, and what people are shown of its groups. Pure."""

from __future__ import annotations

import json
from enum import StrEnum

from peakgate.calibration import Calibrator, Observation, Outcome
from peakgate.calibration.calibrator import KEYS_FORMAT
from peakgate.server.groups import Groups, GroupSummary
from peakgate.server.policy import DEFAULT_COVERAGE


class History(StrEnum):
    """Of what was observed under other memory models, or under other keys: what a margin has of it."""

    NONE = ""
    """Nothing, and it needs nothing."""
    WANTED = "wanted"
    """Nothing: it began anew, and a shadow is to learn it."""
    RETOLD = "retold"
    """All of it, as the present model tells it."""


class Margin:
    """A calibrator with the newest rows of its groups."""

    def __init__(self, calibrator: Calibrator, groups: Groups | None = None, *, history: History = History.NONE) -> None:
        self.calibrator = calibrator
        self.history = history
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
        return Margin(Calibrator.from_state(self.calibrator.state()), Groups.from_state(self._groups.state()), history=self.history)

    def groups(self) -> tuple[GroupSummary, ...]:
        """The groups that were observed, by name, with their margins at the default coverage."""
        return self._groups.summaries(self.calibrator.snapshot(), coverage=DEFAULT_COVERAGE)

    def text(self) -> str:
        """All of it, as the store holds it."""
        state = {"calibrator": self.calibrator.state(), "groups": self._groups.state(), "history": self.history}
        return json.dumps(state, allow_nan=False, separators=(",", ":"))


def margin_from(text: str) -> Margin:
    """The margin whose text that was. Raises ValueError for one that this version cannot read."""
    try:
        state = json.loads(text)
        calibrator, groups = Calibrator.from_state(state["calibrator"]), Groups.from_state(state["groups"])
        return Margin(calibrator, groups, history=History(state.get("history", History.NONE)))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the stored margin cannot be read: {error!r}") from error


def is_of_other_keys(text: str) -> bool:
    """Whether the keys of a stored margin are not this version's; one without any that can be read has none.

    Up to format 3 the state's format counted up with the keys.
    """
    try:
        calibrator = json.loads(text)["calibrator"]
        found = calibrator.get("keys", calibrator["format"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return isinstance(found, int) and found != KEYS_FORMAT
