"""Links of the catalogue's GPUs."""

from __future__ import annotations

import pytest

from peakgate.memory.catalog.gpus import GPUS, GpuSpec
from peakgate.memory.catalog.links import GIGABYTE, links_of
from peakgate.memory.step_time import card_of


@pytest.mark.parametrize("spec", GPUS.values(), ids=lambda spec: spec.name)
def test_a_node_is_no_slower_than_the_network_around_it(spec: GpuSpec) -> None:
    """Of each card and slice; and no GPU reaches the host faster than others over NVLink."""
    links = links_of(spec.name)
    assert 0 < links.between_nodes <= links.inside_node
    assert links.to_host <= links.inside_node or "/" in spec.name


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("a100-80gb", (300, 25, 32)),
        ("h100-80gb", (450, 50, 64)),
        ("v100-16gb", (150, 6.25, 16)),
        ("rtx-4090-24gb", (32, 1.5625, 32)),
        ("a100-80gb/1g.10gb", (32, 25, 32)),
    ],
)
def test_rates_are_those_of_data_sheets(name: str, want: tuple[float, float, float]) -> None:
    """GB/s one way: half of what NVLink's sheets print for both ways; a slice has no NVLink."""
    links = links_of(name)
    assert (links.inside_node, links.between_nodes, links.to_host) == pytest.approx(tuple(rate * GIGABYTE for rate in want))


def test_a_job_without_a_card_is_costed_on_an_a100() -> None:
    """The card of the papers that the formulas come from."""
    assert card_of() == card_of(GPUS["a100-80gb"])
    assert card_of().flops == pytest.approx(0.8 * 312e12)
