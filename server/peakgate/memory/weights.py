"""The weights that one rank holds, as a walk has met them."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.tape import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A weight that `count` equal layers of the rank hold."""

    name: str
    elements: int
    trainable: bool
    count: int
    shape: tuple[int, int] | None = None


def weights_of(parameters: dict[tuple[int, int], list[Parameter]], times: dict[int, int]) -> list[Weight]:
    """The weights of a walk, with how many equal layers hold each."""
    return [
        Weight(name=p.name, elements=p.elements, trainable=p.trainable, count=times[layer[0]], shape=p.shape)
        for layer, listed in parameters.items()
        for p in listed
    ]
