"""What GPUs a pod of a workload gets: candidates with their memory, how many of each, and where each figure comes from. Pure.

    cards = cards_of(pods, facts)

In this order: claims of devices; slices and shares by resource or annotation; nodes that the selection allows; what the selection itself
says (the labels of a flavor that a queue chose are part of it); the instance type that it names. Where nothing tells, there are no
candidates and a doubt, and nobody is refused on it. Taints and what is in use are left out: a pod may wait for a node, and a candidate
too many can only make an answer less sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from peakgate.hooks.kubernetes.candidates import Candidate, Cards
from peakgate.hooks.kubernetes.claims import Claimed, claimed_by, published, stated
from peakgate.hooks.kubernetes.facts import Facts, Node
from peakgate.hooks.kubernetes.node_labels import card_of
from peakgate.hooks.kubernetes.quantities import count_of
from peakgate.hooks.kubernetes.requests import GPU, SHARED, Request, requests_of
from peakgate.hooks.kubernetes.selected_cards import cards_named
from peakgate.hooks.kubernetes.selection import Selection, selection_of
from peakgate.hooks.kubernetes.shares import Share, share_of
from peakgate.hooks.kubernetes.slices import slices_named
from peakgate.readers.manifests.cards import PRODUCT
from peakgate.readers.manifests.pods import Pods

NAME_IT = f"name it, by nodeSelector {PRODUCT[0]} or the annotation peakgate.io/gpu.type"


def cards_of(pods: Pods, facts: Facts) -> Cards:
    """What one pod of a template gets; neither candidates nor a doubt when it asks for no GPU."""
    selection = selection_of(pods.spec, facts.flavor, facts.flavor_name)
    claimed, requests, share = claimed_by(pods, facts), requests_of(pods), share_of(pods)
    if claimed is not None:
        return Cards(doubt="it both claims GPUs and asks for them") if requests else _claimed(claimed, facts)
    if share is not None and share.doubt:
        return Cards(doubt=share.doubt)
    if share is not None and not requests:
        requests = [Request(resource=GPU, count=share.count or 1, source=share.source)] if share.count else []
    if not requests:
        return Cards()
    if len(requests) > 1:
        return Cards(doubt=f"its containers ask for several kinds of GPUs: {', '.join(each.resource for each in requests)}")
    if share is not None:
        return _shares(share, requests[0], selection, facts)
    return _whole(requests[0], selection, facts)


def _claimed(claimed: Claimed, facts: Facts) -> Cards:
    if claimed.doubt:
        return Cards(doubt=claimed.doubt)
    said = [stated(each, facts.catalogue) for each in claimed.alternatives]
    found = [each for wanted in claimed.alternatives for each in published(wanted, facts.devices or ())]
    if not found:  # none is published yet: what the claim says itself
        found = [each for cards in said for each in cards]
        if not found or not all(said):
            return Cards(doubt=f"{claimed.alternatives[0].source} does not say which GPU it takes")
        return Cards(candidates=ordered(found, facts), is_complete=True)
    if not facts.nodes_may_join:
        return Cards(candidates=ordered(found, facts))
    return _with_what_may_join(found, [each for cards in said for each in cards] if all(said) else [], facts)


def _shares(share: Share, request: Request, selection: Selection, facts: Facts) -> Cards:
    """Judged against the part: others have the rest. Of which card it is a part matters as well: for its context and what its driver
    keeps, and for its kernels."""
    request = replace(request, count=share.count or request.count)
    whole = _whole(request, selection, facts)
    parts = [_part(each, share, facts) for each in whole.candidates]
    known = [each for each in parts if each is not None]
    if share.memory_bytes:  # the same on every card, and none is too small that the pod can get
        return Cards(candidates=ordered(known, facts) if known and whole.is_complete else (_unnamed(share, request),))
    if len(known) != len(parts):
        return Cards(doubt=f"the memory of a card is not known of which it gets a part ({share.source})")
    return replace(whole, candidates=ordered(known, facts))


def _part(card: Candidate, share: Share, facts: Facts) -> Candidate | None:
    """None where the card's memory is not known, or is less than the part."""
    total = card.memory_bytes or facts.catalogue.get(card.gpu, 0)
    size = share.memory_bytes or total * share.ratio.numerator // share.ratio.denominator
    if not total or size > total:
        return None
    source = share.source if share.memory_bytes else f"{share.source} of {card.memory_source}"
    on, said = f"{share.source} of {card.name}", share.source if share.count else card.count_source
    return replace(card, memory_bytes=size, is_part=True, on=on, memory_source=source, count_source=said)


def _unnamed(share: Share, request: Request) -> Candidate:
    """So many bytes of whichever card."""
    on, said = f"a share of a GPU ({share.source})", share.source if share.count else request.source
    return Candidate(
        memory_bytes=share.memory_bytes, count=request.count, is_part=True, on=on, memory_source=share.source, count_source=said
    )


def _whole(request: Request, selection: Selection, facts: Facts) -> Cards:
    nodes = [each for each in facts.nodes or () if selection.matches(each.labels) and _has_room(each, request)]
    found = [card_of(each.labels, request.profile) for each in nodes]
    known = [_of_request(each, request) for each in found if each is not None]
    named = cards_named(selection, request.profile) or slices_named(request.profile, facts.catalogue)
    said = [_of_request(each, request) for each in named]
    if known and len(known) == len(found):
        return _with_what_may_join(known, said, facts) if facts.nodes_may_join else Cards(candidates=ordered(known, facts))
    if said:
        return Cards(candidates=ordered(said, facts))
    if known:  # some nodes tell and some do not
        return Cards(candidates=ordered(known, facts), is_complete=False, doubt="nodes that match do not tell which GPU they have")
    return Cards(doubt=_no_card(nodes, selection, facts))


def _with_what_may_join(found: Sequence[Candidate], said: Sequence[Candidate], facts: Facts) -> Cards:
    """What is there, and of what is asked for by name (`said`; nothing where a card is not named) what an autoscaler may bring."""
    others = [each for each in said if not any(_is_like(each, one) for one in found)]
    is_named = bool(said) and not any(each.is_least for each in said)
    return Cards(candidates=ordered([*found, *others] if is_named else found, facts), is_complete=is_named)


def _is_like(one: Candidate, other: Candidate) -> bool:
    """Whether they are one card, told by the same label, by its name or by its memory."""
    if one.gpu and other.gpu:
        return one.gpu == other.gpu
    return bool(one.labels and one.labels == other.labels) or one.memory_bytes == other.memory_bytes > 0


def _no_card(nodes: Sequence[Node], selection: Selection, facts: Facts) -> str:
    asked = ", ".join(str(each) for each in selection.always[:3]) or "no selector"
    if nodes:
        return f"no label of the node {nodes[0].name} tells which GPU it has"
    if facts.nodes is None:
        return f"the pod does not say which GPU it takes ({asked}), and nodes are not looked at; {NAME_IT}"
    return f"no node matches ({asked}), and the selector names no GPU or instance type that is known; {NAME_IT}"


def _has_room(node: Node, request: Request) -> bool:
    """Whether the node could ever hold the pod."""
    return count_of(node.has.get(request.resource, "0")) >= request.count


def _of_request(card: Candidate, request: Request) -> Candidate:
    is_shared = card.is_shared or (request.resource.startswith(SHARED) and not card.is_part)
    return replace(card, count=request.count, count_source=request.source, is_shared=is_shared)


def ordered(cards: Iterable[Candidate], facts: Facts) -> tuple[Candidate, ...]:
    """Candidates, each kind once, from the least memory to the most."""

    def size(card: Candidate) -> tuple[int, str]:
        return card.memory_bytes or facts.catalogue.get(card.gpu, 0), card.name

    return tuple(sorted(dict.fromkeys(_known(each, facts) for each in cards), key=size))


def _known(card: Candidate, facts: Facts) -> Candidate:
    """A slice that the catalogue does not hold, and whose memory is told, has the name of its card."""
    is_known = "/" not in card.gpu or not card.memory_bytes or card.gpu in facts.catalogue
    return card if is_known else replace(card, gpu=card.gpu.partition("/")[0])
