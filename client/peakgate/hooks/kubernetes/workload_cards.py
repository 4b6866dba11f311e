"""The cards of a whole workload, whose pods may run on different ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakgate.hooks.kubernetes.candidates import Candidate, Cards
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.gpus import cards_of, ordered
from peakgate.readers.manifests.pods import Pods


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """What each of `pods` like pods gets."""

    cards: Cards
    pods: int = 1


def cards_of_workload(pods: Sequence[Pods], facts: Facts) -> Cards:
    """Without candidates and doubt where no template asks for GPUs. Pods that know nothing of each other are a job each."""
    return together([PodSet(cards=cards_of(each, facts), pods=each.count if each.together else 1) for each in pods], facts)


def together(podsets: Sequence[PodSet], facts: Facts) -> Cards:
    """The cards on which a job of these pods runs, each once. Launchers have none and do not count; a set of which nobody can say what it
    gets leaves the job open, for its worst rank may be there."""
    found = [each for each in podsets if each.cards.has_gpus and each.pods]
    if not found:
        return Cards()
    unknown = next((each.cards for each in found if not each.cards.candidates), None)
    if unknown is not None:
        return Cards(doubt=unknown.doubt, is_mixed=any(each.cards.candidates for each in found))
    sizes = [(each.cards.candidates[0].count, each.pods) for each in found]
    by_kind: dict[object, Candidate] = {}
    for card in (card for each in found for card in each.cards.candidates):
        by_kind.setdefault(_kind(card), card)
    return Cards(
        candidates=ordered(by_kind.values(), facts),
        is_complete=all(each.cards.is_complete for each in found),
        doubt=next((each.cards.doubt for each in found if each.cards.doubt), ""),
        is_mixed=len({frozenset(map(_kind, each.cards.candidates)) for each in found}) > 1,
        gpus=sum(count * pods for count, pods in sizes),
        pod_gpus=max(count for count, _ in sizes),
    )


def _kind(card: Candidate) -> object:
    """What an answer depends on; how many there are, and where it is said, does not matter."""
    return card.gpu, card.memory_bytes, card.is_part, card.is_shared, card.is_least
