"""A GPU that a pod may get, and what follows from the answers to all that it may get. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from peakgate.hooks.kubernetes.quantities import gibibytes
from peakgate.v1.prediction_pb2 import Verdict

Labels = tuple[tuple[str, str], ...]
MOST_CARDS = 8
"""That are asked about; what has more names no card in earnest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One card, or the part of it that a pod gets. `gpu`: a name of the catalogue; `memory_bytes`: the total, which wins.

    `is_part`: this part is its own, the rest of the card is others'; `is_shared`: others use the same memory, so that what fits is not
    promised; `is_least`: the pod may get more, so that what does not fit may fit all the same. `count`: of these for each pod. `on`: what
    it is a part of, or what the cluster calls it.
    """

    gpu: str = ""
    memory_bytes: int = 0
    count: int = 0
    is_part: bool = False
    is_shared: bool = False
    is_least: bool = False
    on: str = ""
    labels: Labels = ()
    memory_source: str = ""
    count_source: str = ""

    @property
    def name(self) -> str:
        """For a person: what the job would run on."""
        return self.on or self.gpu or f"a GPU with {gibibytes(self.memory_bytes)}"

    @property
    def selector(self) -> str:
        """The labels that pick it, as a nodeSelector on one line."""
        return ", ".join(f"{key}={value}" for key, value in self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """What a pod gets, from the least memory to the most. Without candidates `doubt` says why. Not `is_complete`: it may get others too.

    Of a whole workload: `is_mixed`, its pods run on several of them at the same time; `gpus` of all pods, `pod_gpus` of the largest.
    """

    candidates: tuple[Candidate, ...] = ()
    is_complete: bool = True
    doubt: str = ""
    is_mixed: bool = False
    gpus: int = 0
    pod_gpus: int = 0

    @property
    def has_gpus(self) -> bool:
        """Whether the pod asks for GPUs at all."""
        return bool(self.candidates or self.doubt)

    def place_of(self, shown: Candidate | None) -> int:
        """Which of the candidates it is; the first for none of them."""
        return next((place for place, each in enumerate(self.candidates) if each is shown), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What holds for the pod whichever of its candidates it gets. `shown`: the candidate whose answer to show; `reason`: what is not in
    that answer; `is_mixed`: its pods run on several of them, and no answer for one of them is the answer for all."""

    verdict: Verdict.ValueType
    shown: Candidate | None = None
    reason: str = ""
    is_mixed: bool = False


def concluded(cards: Cards, verdicts: Sequence[Verdict.ValueType]) -> Conclusion:
    """From the answer for each candidate, in their order: refused only when none of all that it may get fits.

    The same holds where its pods run on several at once (`is_mixed`), though one card that is too small ends the whole job: which of its
    ranks needs the most, and on which card it runs, is not known. It is on one of them, so where none fits the job does not either.
    """
    return replace(_concluded(cards, verdicts), is_mixed=cards.is_mixed)


def _concluded(cards: Cards, verdicts: Sequence[Verdict.ValueType]) -> Conclusion:
    if not cards.candidates:
        return Conclusion(verdict=Verdict.VERDICT_UNDECIDED, reason=cards.doubt or "no GPU is asked for")
    told = [(each, _for_sure(each, verdict)) for each, verdict in zip(cards.candidates, verdicts, strict=True)]
    fits = [each for each, verdict in told if verdict == Verdict.VERDICT_ADMIT]
    fails = [each for each, verdict in told if verdict == Verdict.VERDICT_REJECT]
    if len(fits) == len(told):
        return Conclusion(verdict=Verdict.VERDICT_ADMIT, shown=fits[0])
    if len(fails) == len(told):
        if cards.is_complete:
            return Conclusion(verdict=Verdict.VERDICT_REJECT, shown=fails[-1])
        return Conclusion(verdict=Verdict.VERDICT_UNDECIDED, shown=fails[-1], reason=f"it may still get another GPU: {_growth(cards)}")
    if fits:
        return Conclusion(verdict=Verdict.VERDICT_UNDECIDED, shown=fits[0], reason=_some(cards, fits, fails or [each for each, _ in told]))
    return _open(cards, verdicts)


def _for_sure(candidate: Candidate, verdict: Verdict.ValueType) -> Verdict.ValueType:
    if verdict == Verdict.VERDICT_ADMIT and candidate.is_shared:
        return Verdict.VERDICT_UNDECIDED
    if verdict == Verdict.VERDICT_REJECT and candidate.is_least:
        return Verdict.VERDICT_UNDECIDED
    return verdict


def _open(cards: Cards, verdicts: Sequence[Verdict.ValueType]) -> Conclusion:
    for each, verdict in zip(cards.candidates, verdicts, strict=True):
        if each.is_shared and verdict == Verdict.VERDICT_ADMIT:
            reason = f"it fits on the whole of {each.name}, which other pods share in time: their use of the same memory is not bounded"
            return Conclusion(verdict=Verdict.VERDICT_UNDECIDED, shown=each, reason=reason)
        if each.is_least and verdict == Verdict.VERDICT_REJECT:
            reason = f"it does not fit on the smallest GPU that the selector allows ({each.memory_source}), a larger one may be given"
            return Conclusion(verdict=Verdict.VERDICT_UNDECIDED, shown=each, reason=reason)
    decides = next((each for each, verdict in zip(cards.candidates, verdicts, strict=True) if verdict == Verdict.VERDICT_UNDECIDED), None)
    return Conclusion(verdict=Verdict.VERDICT_UNDECIDED, shown=decides or cards.candidates[0])


def _some(cards: Cards, fits: Sequence[Candidate], others: Sequence[Candidate]) -> str:
    best = fits[0]
    away = next((each for each in others if each is not best), others[0])
    pick = f"nodeSelector {best.selector}" if best.selector else best.memory_source
    told = f"it fits on {best.name} and not for sure on {away.name}"
    if cards.is_mixed:
        return f"{told}, and its pods run on both: give all of them the first with {pick}"
    return f"{told}, and may get either: pick the first with {pick}"


def _growth(cards: Cards) -> str:
    return cards.doubt or "nodes that match may be added"
