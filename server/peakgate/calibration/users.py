"""What is each user's own: a leaning of all their jobs, which is learned, and a distance that no leaning explains, which is quarantined.

Somebody's code keeps a second copy, somebody's loader pads less: such habits are random effects, predicted by their shrunken mean
(Robinson, "That BLUP is a good thing", Statistical Science 6, 1991). Whoever lies far off is judged against the peers: when everybody
does, it is drift and not them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from statistics import median

CLIP = 6.0
LOWEST_GAIN = 0.15
"""Of the moving average of a user's scores: it follows the last six or so jobs."""
MIN_ROWS = 4
SHRINKAGE_ROWS = 4.0
"""Rows that the belief in no leaning is worth: the variance of a score over that of leanings, whose deviation is taken as half a scale."""
LEANING_CLIP = 2.5
"""Scores beyond this are no leaning: it is SUSPECT_SCORE."""
KEPT = 0.98
"""Weight that is left of a user's older rows with each new one: some fifty rows are remembered."""
SUSPECT_SCORE = 2.5
PEER_ROWS = 40
"""Newest rows of a framework that a user is judged against."""
MIN_PEERS = 10
PEER_SCORE = 1.5
"""Median distance of the peers' scores from their levels above which everybody is off."""
MOST_SUSPECTS = 0.2
"""Share of the users above which suspicion says more about the levels than about them."""


class Users:
    """Moving averages of users' scores, and the newest scores of each framework."""

    def __init__(self) -> None:
        self._means: dict[str, tuple[int, float]] = {}
        self._peers: dict[str, deque[tuple[str, float]]] = {}
        self._far: set[str] = set()
        self._sums: dict[str, tuple[float, float]] = {}
        self._leanings: dict[str, float] = {}

    def see(self, user: str, framework: str, score: float) -> None:
        """Takes the score of an exact row."""
        if user:
            rows, mean = self._means.get(user, (0, 0.0))
            gain = max(LOWEST_GAIN, 1 / (rows + 1))
            self._means[user] = rows + 1, mean + gain * (min(max(score, -CLIP), CLIP) - mean)
            self._note(user)
        self._peers.setdefault(framework, deque(maxlen=PEER_ROWS)).append((user, score))

    def settle(self, user: str, score: float) -> None:
        """Takes what the levels left over of an exact row that was learned from."""
        if user:
            weight, total = self._sums.get(user, (0.0, 0.0))
            self._lean(user, weight * KEPT + 1, total * KEPT + min(max(score, -LEANING_CLIP), LEANING_CLIP))

    def leaning(self, user: str) -> float:
        """Scales by which the jobs of the user need more than others of their levels; 0 for an unknown one."""
        return self._leanings.get(user, 0.0)

    def leanings(self) -> Mapping[str, float]:
        """Of all users that were learned from."""
        return dict(self._leanings)

    def is_suspect(self, user: str, framework: str) -> bool:
        """Whether the user's jobs lie far from their levels while those of the others do not."""
        if user not in self._far:
            return False
        others = [abs(score) for peer, score in self._peers.get(framework, ()) if peer != user]
        return len(others) >= MIN_PEERS and median(others) < PEER_SCORE

    def kept_out_of_pool(self, present: Iterable[str]) -> frozenset[str]:
        """Users whose rows would distort the pooled scores; none when there are too many of them."""
        users = frozenset(present)
        return frozenset(self._far) if len(self._far) <= MOST_SUSPECTS * max(1, len(users)) else frozenset()

    def suspects(self) -> Mapping[tuple[str, str], float]:
        """(user, framework) -> mean score beyond the leaning of suspects who are far above: their own jobs are bounded by so much more."""
        above = {user: self._means[user][1] - self.leaning(user) for user in sorted(self._far) if self._means[user][1] > 0}
        return {(user, name): mean for name in sorted(self._peers) for user, mean in above.items() if self.is_suspect(user, name)}

    def _lean(self, user: str, weight: float, total: float) -> None:
        self._sums[user] = weight, total
        self._leanings[user] = total / (weight + SHRINKAGE_ROWS)

    def _note(self, user: str) -> None:
        rows, mean = self._means[user]
        if rows >= MIN_ROWS and abs(mean) >= SUSPECT_SCORE:
            self._far.add(user)
        else:
            self._far.discard(user)

    def state(self) -> dict[str, object]:
        """Everything, as JSON can hold it."""
        return {
            "means": {user: list(pair) for user, pair in sorted(self._means.items())},
            "leanings": {user: list(pair) for user, pair in sorted(self._sums.items())},
            "peers": {name: [list(pair) for pair in rows] for name, rows in sorted(self._peers.items())},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Mapping[str, list[object]]]) -> Users:
        """The users whose `state` that was."""
        users = cls()
        for user, pair in state["means"].items():
            rows, mean = pair
            users._means[user] = int(str(rows)), float(str(mean))
            users._note(user)
        for user, pair in state["leanings"].items():
            weight, total = pair
            users._lean(user, float(str(weight)), float(str(total)))
        for name, rows_of in state["peers"].items():
            pairs = [[str(part) for part in pair] for pair in rows_of if isinstance(pair, list)]
            users._peers[name] = deque(((peer, float(score)) for peer, score in pairs), maxlen=PEER_ROWS)
        return users
