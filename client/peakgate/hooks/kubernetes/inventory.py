"""What the webhook knows of the cluster's cards: its nodes and the devices that drivers publish, and the service's catalogue, each read
twice a minute beside the reviews."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from peakgate.hooks.kubernetes.facts import Facts, devices_of, nodes_of
from peakgate.hooks.kubernetes.objects import Object

PERIOD_SECONDS = 30.0
FIRST_SECONDS = 0.5
"""Between two looks for a catalogue that was never read: without it a share of a card, or a slice, is of a size that is not known."""


class Nodes(Protocol):
    """Where the nodes come from."""

    def nodes(self) -> Sequence[Object] | None:
        """All of them; None: they cannot be listed now."""

    def slices(self) -> Sequence[Object] | None:
        """All ResourceSlices; None: they cannot be listed now, or the cluster has no such thing."""


async def no_catalogue() -> Mapping[str, int]:
    """Nobody to ask."""
    return {}


@dataclass(kw_only=True)
class Inventory:
    """`facts` are those of the last list that came; before the first one nothing is known of nodes. `may_join`: whether an autoscaler
    adds nodes, so that none that match now means little. `nodes`: None where they are not looked at."""

    nodes: Nodes | None = None
    may_join: bool = True
    catalogue: Callable[[], Awaitable[Mapping[str, int]]] = no_catalogue
    tell: Callable[[str, str], None]
    facts: Facts = field(default_factory=Facts, init=False)
    _is_failing: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """What is known without asking."""
        self.facts = Facts(nodes_may_join=self.may_join)

    async def look(self) -> None:
        """Lists the nodes and the devices once."""
        if self.nodes is None:
            return
        found, slices = await asyncio.to_thread(self.nodes.nodes), await asyncio.to_thread(self.nodes.slices)
        if found is not None:
            self.facts = replace(self.facts, nodes=nodes_of(found))
        if slices is not None:
            self.facts = replace(self.facts, devices=devices_of(slices))
        if self._is_failing is not (found is None):
            self._is_failing = found is None
            self.tell("error" if self._is_failing else "info", "nodes cannot be listed" if self._is_failing else "nodes are listed again")

    async def read_catalogue(self) -> None:
        """Reads it once; while nobody answers the last one holds."""
        if found := await self.catalogue():
            self.facts = replace(self.facts, catalogue=found)

    async def watch(self) -> None:
        """Looks again and again, for ever."""
        while True:
            await self.look()
            await asyncio.sleep(PERIOD_SECONDS)

    async def watch_catalogue(self) -> None:
        """Reads it as soon as somebody answers, and then again and again, for ever."""
        while True:
            await self.read_catalogue()
            await asyncio.sleep(PERIOD_SECONDS if self.facts.catalogue else FIRST_SECONDS)
