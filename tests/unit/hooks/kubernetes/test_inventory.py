"""What the webhook knows of the cluster's cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from peakgate.hooks.kubernetes.inventory import FIRST_SECONDS, PERIOD_SECONDS, Inventory
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


async def test_the_last_catalogue_holds_while_nobody_answers() -> None:
    """A service that is away at the start has one later, and a new version of it may have another."""
    answers: list[Mapping[str, int]] = [{}, {"t4-16gb": 5}, {}, {"t4-16gb": 6}]

    async def catalogue() -> Mapping[str, int]:
        return answers.pop(0)

    inventory = Inventory(catalogue=catalogue, tell=lambda *_: None)
    for want in ({}, {"t4-16gb": 5}, {"t4-16gb": 5}, {"t4-16gb": 6}):
        await inventory.read_catalogue()
        assert inventory.facts.catalogue == want
    assert inventory.facts.nodes is None


async def test_the_catalogue_is_read_as_soon_as_somebody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then it is asked for often, afterwards twice a minute."""
    slept: list[float] = []
    answers: list[Mapping[str, int]] = [{}, {}, {"t4-16gb": 5}, {}]

    async def catalogue() -> Mapping[str, int]:
        return answers.pop(0)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("peakgate.hooks.kubernetes.inventory.asyncio.sleep", sleep)
    inventory = Inventory(catalogue=catalogue, tell=lambda *_: None)
    with pytest.raises(IndexError):
        await inventory.watch_catalogue()
    assert slept == [FIRST_SECONDS, FIRST_SECONDS, PERIOD_SECONDS, PERIOD_SECONDS]
    assert FIRST_SECONDS <= 1
    assert inventory.facts.catalogue == {"t4-16gb": 5}


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
