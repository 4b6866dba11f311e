"""The cards of a whole workload: those of the pods that ask for GPUs, when all of them get the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.hooks.kubernetes.candidates import Cards
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.readers.manifests.pods import Pods


def cards_of_workload(pods: Sequence[Pods], facts: Facts) -> Cards:
    """Without candidates and doubt where no template asks for GPUs."""
    found = [cards for each in pods if (cards := cards_of(each, facts)).has_gpus]
    if not found:
        return Cards()
    doubts = [each for each in found if each.doubt and not each.candidates]
    if doubts:
        return doubts[0]
    kinds = {tuple((card.gpu, card.memory_bytes, card.is_shared) for card in each.candidates) for each in found}
    if len(kinds) > 1:
        names = dict.fromkeys(card.name for each in found for card in each.candidates)
        return Cards(doubt=f"its pods get different GPUs: {', '.join(names)}")
    return found[0]
