"""An allocation lives as long as somebody holds it."""

from __future__ import annotations

import pytest
from tests.unit.memory.test_meter import a_meter

from peakgate.memory.meter import Meter
from peakgate.memory.storage import Storage


@pytest.fixture
def meter() -> Meter:
    """A meter that rounds to tens and keeps its events."""
    return a_meter(events=[])


def test_the_last_holder_frees_it(meter: Meter) -> None:
    """Not the first one that lets go; by the number that it was allocated under."""
    storage = Storage(25, "activations", meter)
    assert storage.hold() is storage
    storage.drop()
    assert (meter.live, meter.blocks) == (25, 30)
    storage.drop()
    assert (meter.live, meter.blocks, meter.events) == (0, 0, [(storage.number, 25), (storage.number, -25)])


def test_what_is_emptied_costs_nothing_until_it_is_filled_again(meter: Meter) -> None:
    """Its holders stay; the memory that comes again is another allocation of the same size."""
    storage = Storage(25, "activations", meter)
    first = storage.number
    storage.empty()
    assert (meter.live, meter.blocks, storage.nbytes, storage.holders) == (0, 0, 0, 1)
    storage.refill()
    assert (meter.live, meter.blocks, storage.nbytes) == (25, 30, 25)
    assert storage.number != first
    storage.drop()
    assert (meter.live, meter.blocks) == (0, 0)


@pytest.mark.parametrize(
    ("before", "becomes", "want"),
    [
        ("temporaries", "activations", "activations"),
        ("temporaries", "gradients", "gradients"),
        ("activations", "gradients", "gradients"),
        ("logits", "activations", "logits"),
        ("gradients", "activations", "gradients"),
    ],
)
def test_only_what_nothing_kept_yet_changes_its_name(meter: Meter, before: str, becomes: str, want: str) -> None:
    """A temporary becomes what keeps it, and anything a gradient that a parameter takes over; logits that are saved stay logits."""
    storage = Storage(25, before, meter)
    storage.become(becomes)
    assert (storage.category, meter.by[want], sum(meter.by.values())) == (want, 30, 30)
    storage.drop()
    assert sum(meter.by.values()) == 0
