"""The cards that a service knows by name."""

from __future__ import annotations

import pytest
from tests.unit.hooks.kubernetes.test_gpus import CATALOGUE

from peakgate.hooks.asking import Service
from peakgate.hooks.kubernetes.catalogue import catalogue_of


@pytest.fixture
def absent() -> str:
    """An address where nobody listens: the discard port needs rights that no test has."""
    return "127.0.0.1:9"


async def test_the_first_that_answers_is_believed(target: str, absent: str) -> None:
    """The one beside the webhook stands in for a service that is away."""
    services = [Service(absent), Service(target)]
    assert await catalogue_of(*services) == CATALOGUE
    assert await catalogue_of(services[0], None) == {}
    for each in services:
        await each.channel.close()
