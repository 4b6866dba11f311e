"""What the webhook knows of the cluster's cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakgate.hooks.kubernetes.inventory import Inventory
from peakgate.hooks.kubernetes.objects import Object


@dataclass
class SomeNodes:
    """A list that may fail."""

    found: Sequence[Object] | None
    published: Sequence[Object] | None = None

    def nodes(self) -> Sequence[Object] | None:
        """The list."""
        return self.found

    def slices(self) -> Sequence[Object] | None:
        """What drivers publish."""
        return self.published


async def test_the_last_list_holds_while_none_comes() -> None:
    """It is said once when nodes cannot be listed, and once when they can again."""
    said: list[str] = []
    node = {"metadata": {"name": "a", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    source = SomeNodes([node])
    inventory = Inventory(nodes=source, tell=lambda level, _: said.append(level))
    assert inventory.facts.nodes is None
    await inventory.look()
    source.found = None
    await inventory.look()
    await inventory.look()
    assert inventory.facts.nodes is not None
    assert [each.name for each in inventory.facts.nodes] == ["a"]
    assert said == ["error"]
    source.found = []
    await inventory.look()
    assert (list(inventory.facts.nodes), said) == ([], ["error", "info"])


async def test_the_catalogue_is_asked_for_until_it_comes() -> None:
    """A service that is away at the start has one later; it does not change after that."""
    answers: list[Mapping[str, int]] = [{}, {"t4-16gb": 5}, {"t4-16gb": 6}]

    async def catalogue() -> Mapping[str, int]:
        return answers.pop(0)

    inventory = Inventory(catalogue=catalogue, tell=lambda *_: None)
    for want in ({}, {"t4-16gb": 5}, {"t4-16gb": 5}):
        await inventory.look()
        assert inventory.facts.catalogue == want
    assert inventory.facts.nodes is None


async def test_the_devices_of_the_last_list_hold() -> None:
    """A cluster without the kind has none, which is no fault; one that cannot be listed now keeps what it had."""
    said: list[str] = []
    source = SomeNodes([])
    inventory = Inventory(nodes=source, tell=lambda level, _: said.append(level))
    await inventory.look()
    assert inventory.facts.devices is None
    source.published = [{"spec": {"driver": "gpu.nvidia.com", "nodeName": "a", "devices": [{"name": "gpu-0"}]}}]
    await inventory.look()
    source.published = None
    await inventory.look()
    assert inventory.facts.devices is not None
    assert ([each.node for each in inventory.facts.devices], said) == (["a"], [])
