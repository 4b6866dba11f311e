"""The operator's cards, cheapest first: from prices an hour, or from a plain order of preference."""

from __future__ import annotations

import math

from peakgate.memory.catalog.gpus import GPUS, find_gpu
from peakgate.memory.prediction import JobError


def by_price(text: str) -> tuple[str, ...]:
    """`h100-80gb=2.5,a100-40gb=1.2` as catalogue names, cheapest first, of one price the smallest. Raises ValueError."""
    prices: dict[str, float] = {}
    for part in _parts(text):
        name, equals, price = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} has no price: write NAME=PRICE, as in h100-80gb=2.5")
        _add(prices, _known(name), _price(name, price))
    return tuple(sorted(prices, key=lambda name: (prices[name], GPUS[name].usable_bytes, name)))


def by_preference(text: str) -> tuple[str, ...]:
    """`l4-24gb,a100-40gb` as catalogue names in the same order. Raises ValueError."""
    order: dict[str, float] = {}
    for place, name in enumerate(_parts(text)):
        _add(order, _known(name), place)
    return tuple(order)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _add(costs: dict[str, float], name: str, cost: float) -> None:
    if name in costs:
        raise ValueError(f"{name} stands there twice: keep one")
    costs[name] = cost


def _known(name: str) -> str:
    try:
        return find_gpu(name).name
    except JobError as error:
        raise ValueError(error.fields[0].description.removesuffix("; for another card state gpu.memory_bytes instead")) from error


def _price(name: str, text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not (math.isfinite(price) and price > 0):
        raise ValueError(f"the price of {name.strip()} is {text.strip()!r}; write a number above 0, as in {name.strip()}=2.5")
    return price
