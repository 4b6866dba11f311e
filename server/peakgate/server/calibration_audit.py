"""Found against promised: needs held against the bounds that were given for them at Predict, tallied by group and by day. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

from peakgate.server.clock import DAY_US

CONFIDENCE = 0.95
"""Of the interval around a share."""

WEEK_DAYS = 7
"""Days that a point of the coverage over time stands for: a day alone has too few jobs, and weekends fewer."""

KNOWN_KINDS = frozenset({"exact", "upper"})
"""Kinds of observations whose need is known."""

DISTRUSTED, TRUSTED, UNKNOWN = "distrusted", "trusted", "unknown"

BELOW_PROMISE = "COVERAGE_BELOW_PROMISE"
"""Fewer needs stayed within their bound than was promised, in the whole time and in its last seven days, beyond chance."""
WAS_BELOW_PROMISE = "COVERAGE_WAS_BELOW_PROMISE"
"""The same of the whole time, but not of its last seven days."""
TOO_FEW_NEEDS = "TOO_FEW_NEEDS"
"""Even if all of them had stayed within their bound, that could be chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One attempt against its prediction. `usable_bytes` is what the verdict held the bound against; 0: no card was stated."""

    group: str
    is_rejected: bool
    is_out_of_memory: bool
    promised: float | None
    required_bytes: int
    bound_bytes: int
    usable_bytes: int
    need_bytes: float
    lower_bytes: int
    upper_bytes: int | None
    finished_us: int
    kind: str
    is_told: bool
    is_greedy: bool

    @property
    def is_exact(self) -> bool:
        """Whether the need is known."""
        return self.kind in KNOWN_KINDS

    @property
    def is_miss(self) -> bool:
        """Whether the need is known to have passed the bound."""
        return self._passed(self.bound_bytes) is True

    @property
    def is_decided(self) -> bool:
        """Whether it is known on which side of the bound the need lay."""
        return self._passed(self.bound_bytes) is not None

    @property
    def passed_the_card(self) -> bool | None:
        """Whether the need was more than the card; None: that is not known."""
        return self._passed(self.usable_bytes) if self.usable_bytes else None

    def _passed(self, size_bytes: int) -> bool | None:
        """Whether the need was more than a size. Of an out-of-memory it is known that it was more than what it had."""
        if self.is_exact:
            return self.need_bytes > size_bytes
        return True if self.is_out_of_memory and self.need_bytes >= size_bytes else None


@dataclass(slots=True)
class Coverage:
    """How many needs stayed at or under their bound, and what had been promised of them."""

    needs: int = 0
    misses: int = 0
    promised_sum: float = 0.0
    promised_rows: int = 0

    def take(self, seen: Seen) -> None:
        """Takes an attempt of which it is known on which side of the bound its need lay."""
        self.needs += 1
        self.misses += seen.is_miss
        if seen.promised is not None:
            self.promised_sum += seen.promised
            self.promised_rows += 1

    def add(self, other: Coverage) -> None:
        """Takes what another has counted."""
        self.needs += other.needs
        self.misses += other.misses
        self.promised_sum += other.promised_sum
        self.promised_rows += other.promised_rows

    @property
    def found(self) -> float | None:
        """Share of the needs at or under their bound; None without needs."""
        return 1 - self.misses / self.needs if self.needs else None

    @property
    def promised(self) -> float | None:
        """Mean of what the predictions stated; None where none stated anything."""
        return self.promised_sum / self.promised_rows if self.promised_rows else None

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Ends of the interval of `found`."""
        return wilson(self.needs - self.misses, self.needs, confidence=confidence)

    def is_below(self, *, among: int = 1) -> bool:
        """Whether there are more misses than were promised, beyond chance. `among` are looked at together: so that of many none stands
        out by chance, each is held to a stricter limit (Bonferroni; Dunn, Journal of the American Statistical Association 56, 1961)."""
        limit = (1 - CONFIDENCE) / 2 / max(1, among)
        return self.promised is not None and chance_of(self.misses, self.needs, 1 - self.promised) < limit


@dataclass(slots=True)
class Tally:
    """What is counted of a group, or of all."""

    coverage: Coverage = field(default_factory=Coverage)
    exact_rows: int = 0
    out_of_memory_misses: int = 0
    waste_sum: float = 0.0
    told_rows: int = 0
    greedy_rows: int = 0
    rejected_attempts: int = 0
    false_rejections: int = 0
    right_rejections: int = 0

    def take(self, seen: Seen) -> None:
        """Takes an attempt that was learned from."""
        if seen.is_decided:
            self.coverage.take(seen)
            self.out_of_memory_misses += seen.is_miss and not seen.is_exact
        if seen.is_exact:
            self.exact_rows += 1
            self.waste_sum += seen.bound_bytes - seen.need_bytes
            self.told_rows += seen.is_told
            self.greedy_rows += seen.is_greedy
        if seen.is_rejected:
            self.rejected_attempts += 1
            self.false_rejections += seen.passed_the_card is False
            self.right_rejections += seen.passed_the_card is True

    @property
    def mean_waste_bytes(self) -> float | None:
        """Mean of bound minus need; None without a known need."""
        return self.waste_sum / self.exact_rows if self.exact_rows else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day that a need was seen of, and the seven that end with it."""

    number: int
    """Days since the epoch."""
    needs: int
    misses: int
    week: Coverage
    is_below: bool
    """Whether the seven days lie below what was promised, beyond chance."""


@dataclass(slots=True)
class Audit:
    """Tallies of all attempts, of each group and of each day; at most `points` single attempts, every `stride`-th."""

    stride: int = 1
    overall: Tally = field(default_factory=Tally)
    groups: dict[str, Tally] = field(default_factory=dict)
    days: dict[int, Coverage] = field(default_factory=dict)
    points: list[Seen] = field(default_factory=list)
    rows: int = 0

    def take(self, seen: Seen) -> None:
        """Takes an attempt that was learned from."""
        self.overall.take(seen)
        self.groups.setdefault(seen.group, Tally()).take(seen)
        if seen.is_decided:
            self.days.setdefault(day_of(seen.finished_us), Coverage()).take(seen)
        if self.rows % self.stride == 0:
            self.points.append(seen)
        self.rows += 1

    def by_day(self) -> list[Day]:
        """Days in their order."""
        weeks = {number: _week(self.days, number) for number in sorted(self.days)}
        return [
            Day(
                number=number,
                needs=self.days[number].needs,
                misses=self.days[number].misses,
                week=week,
                is_below=week.is_below(among=len(weeks)),
            )
            for number, week in weeks.items()
        ]

    def in_order(self) -> list[Seen]:
        """The points in the order of their ends."""
        return sorted(self.points, key=lambda seen: (seen.finished_us, seen.group, seen.bound_bytes))


def day_of(moment_us: int) -> int:
    """Days since the epoch."""
    return moment_us // DAY_US


def stride_of(rows: int, *, most: int) -> int:
    """Every so-manieth of `rows` makes at most `most`."""
    return max(1, math.ceil(rows / most))


def wilson(hits: int, total: int, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Interval of a share: the score interval (E. B. Wilson, Journal of the American Statistical Association 22, 1927, p. 209).

    It keeps near its confidence for shares near 1 and few rows, where the usual normal one does not (Brown, Cai and DasGupta,
    Statistical Science 16, 2001). Without rows it is everything.
    """
    if not total:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, weight = hits / total, z * z / total
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == total else centre + half)


def chance_of(misses: int, needs: int, share: float) -> float:
    """Probability of at least so many misses when each need is one with probability `share` (binomial). 1 for no more than expected."""
    if not needs or misses <= share * needs:
        return 1.0
    if share <= 0:
        return 0.0
    choices = math.lgamma(needs + 1) - math.lgamma(misses + 1) - math.lgamma(needs - misses + 1)
    rest = math.log1p(-share) * (needs - misses) if share < 1 else 0.0
    term = total = math.exp(choices + misses * math.log(share) + rest)
    for count in range(misses, needs):  # beyond the expected number they only become smaller
        term *= (needs - count) / (count + 1) * share / (1 - share)
        total += term
        if term < total * 1e-12:
            break
    return min(1.0, total)


def fewest_needs(promised: float) -> int:
    """Needs of which all must stay within their bound before chance is unlikely: promised ** n ≤ 1 − CONFIDENCE (binomial)."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(promised)) if 0 < promised < 1 else 1


def verdict(overall: Coverage, last_week: Coverage, reasons: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """(trusted, distrusted or unknown, why). `reasons`: for which bounds are wide ones now."""
    is_low, is_low_now = overall.is_below(), last_week.is_below()
    missing = overall.promised is None or overall.needs < fewest_needs(overall.promised)
    low = (BELOW_PROMISE,) if is_low_now else (WAS_BELOW_PROMISE,) if is_low else ()
    found = (*reasons, *low)
    if any(reason != WAS_BELOW_PROMISE for reason in found):
        return DISTRUSTED, found
    return (UNKNOWN, (*found, TOO_FEW_NEEDS)) if missing else (TRUSTED, found)


def _week(days: Mapping[int, Coverage], last: int) -> Coverage:
    week = Coverage()
    for number in range(last - WEEK_DAYS + 1, last + 1):
        if number in days:
            week.add(days[number])
    return week
