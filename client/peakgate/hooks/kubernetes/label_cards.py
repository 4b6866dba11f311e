"""The cards that the labels in a workload's own templates name, where nobody knows the cluster's nodes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.hooks.kubernetes.candidates import Candidate, Cards
from peakgate.readers.manifests.cards import SHARED, possible_cards
from peakgate.readers.manifests.pods import Pods

UNNAMED = "no label of its nodeSelector or required affinity names the GPU"


def cards_by_labels(pods: Sequence[Pods]) -> Cards:
    """Of the pods that name any; none where the one card is that which the readers state already. A name of the catalogue is all that a
    label tells."""
    for each in pods:
        possible = possible_cards(each.spec)
        if possible is None or each.spec.has("nodeSelector.cloud.google.com/gke-gpu-partition-size"):
            continue
        found = sorted(dict(possible.cards).items())
        if len(found) == 1 and not found[0][1].text.lower().endswith(SHARED):
            return Cards()
        return Cards(
            candidates=tuple(
                Candidate(
                    gpu=name,
                    is_shared=stated.text.lower().endswith(SHARED),
                    labels=((possible.label, stated.text),),
                    memory_source=f"{possible.label}={stated.text}",
                )
                for name, stated in found
            )
        )
    return Cards(doubt=UNNAMED)
