"""The card on which a submission is judged: what its request may get, by the administrator's table and the names of types. Pure.

Of a request that may get several kinds of card the policy says which one counts (card_table.Untyped). One that gets a share of a card,
or a card that nobody knows the memory of, has none: then nothing is judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from peakgate.hooks.slurm.card_names import cards_meant, named_bytes
from peakgate.hooks.slurm.card_rows import rows_for
from peakgate.hooks.slurm.card_table import CATALOGUE, CardTable, Row, Untyped
from peakgate.hooks.slurm.submission import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card that a job may get: a name of the catalogue, or bytes, which then win. `label`: the type as the cluster calls it."""

    name: str = ""
    memory_bytes: int = 0
    label: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a request may get: its cards from the least memory to the most, and which of them counts. `doubt`: why there is none."""

    cards: tuple[Card, ...] = ()
    policy: Untyped = Untyped.best
    doubt: str = ""

    @property
    def card(self) -> Card | None:
        """The one to judge on."""
        if not self.cards:
            return None
        return self.cards[0 if self.policy is Untyped.worst else -1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """The cluster's cards. `catalogue`: total bytes by name (CatalogService.ListGpus), without which a name's own size counts."""

    table: CardTable = field(default_factory=CardTable)
    catalogue: Mapping[str, int] = field(default_factory=dict)

    def choose(self, submission: Submission) -> Choice:
        """The cards that a submission may get."""
        if submission.is_fraction:
            return Choice(doubt="a share of a card has no memory of its own")
        if submission.unread:
            return Choice(doubt=f"the request cannot be read: {', '.join(submission.unread)}")
        found: list[Card] = []
        for kind in submission.types:
            cards = [_card_of(place, what) for place, what in rows_for(self.table, submission, kind)] or [_by_name(kind, ())]
            doubt = next((card for card in cards if isinstance(card, str)), "")
            if doubt:
                return Choice(doubt=doubt)
            found += [card for card in cards if isinstance(card, Card)]
        ordered = tuple(sorted(dict.fromkeys(found), key=lambda card: (self.bytes_of(card), card.name, card.label)))
        # A job with cards of several types runs on all of them, so the least one counts whatever the policy says.
        return Choice(ordered, self.table.untyped if len(submission.types) == 1 else Untyped.worst)

    def bytes_of(self, card: Card) -> int:
        """A card's memory, to compare it with others; 0: not known."""
        return card.memory_bytes or self.catalogue.get(card.name, 0) or named_bytes(card.name)

    def least_that_holds(self, choice: Choice, needed_bytes: int) -> Card | None:
        """The card with the least memory on which a job fits, of those whose memory is known; None: none."""
        return next((card for card in choice.cards if self.bytes_of(card) >= needed_bytes), None)


def _card_of(place: Row, what: Row) -> Card | str:
    """The card of a row; else why it is not known."""
    if what.memory_bytes or what.gpu:
        return Card(name=what.gpu, memory_bytes=what.memory_bytes, label=place.type, source=what.source)
    return _by_name(place.type, place.features)


@lru_cache(maxsize=1024)
def _by_name(label: str, features: tuple[str, ...]) -> Card | str:
    names = cards_meant(label, features)
    if len(names) == 1:
        return Card(name=names[0], label=label, source=CATALOGUE)
    what = f"the type {label}" if label else "a card without a type"
    told = f"may be {' or '.join(names)}" if names else "says nothing of its memory"
    return f"{what} {told}: state it in the table of cards"


_UNTYPED = re.compile(r"((?:^|,)\s*(?:gres[:/])?gpu)(?=[:=]\d+\s*(?:,|$)|\s*(?:,|$))", re.IGNORECASE)


def pinned(submission: Submission, card: Card) -> dict[str, str]:
    """The fields of the request with the card's type in them; empty where the request names a type already, or the card has none."""
    if not card.label or submission.types != ("",):
        return {}
    changed = {name: _UNTYPED.sub(rf"\g<1>:{card.label}", text) for name, text in submission.requests.items()}
    return {name: text for name, text in changed.items() if text != submission.requests[name]}
