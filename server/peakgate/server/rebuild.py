"""A margin made again from what was observed, so that it is as if nothing had come late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from peakgate.calibration import Calibrator, Observation, Outcome, in_order
from peakgate.server.margin import Margin, margin_from
from peakgate.server.store.base import Store
from peakgate.server.subjects import observation_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A margin that was made again, and what became of each observation that it took in anew, by its name."""

    margin: Margin
    outcomes: Mapping[str, Outcome]


NEAR = 20
"""Versions that are gone back at once for a row that comes late; beyond them rows are collected, and one replay takes in all of them."""


def rebuilt(store: Store, sequence: int, late: Sequence[Observation], *, epoch: str, reach: int | None = None) -> Rebuilt | None:
    """The margin that took in what led to version `sequence`, and `late`, in the order of their ends.

    It goes on from the newest ancestor to which nothing of that comes late, and equals the one that learned all of it from the first on,
    to the last bit. 0: from the first on. None: no ancestor within `reach` will do.
    """
    for step, (place, margin) in enumerate(_ancestors(store, sequence, epoch)):
        if reach is not None and step >= reach:
            return None
        rows = in_order([*(observation_from(text) for text in store.taken_in(place, model_version=epoch)), *late])
        if not rows or rows[0].order > margin.newest:
            return Rebuilt(margin=margin, outcomes={row.prediction: margin.learn(row) for row in rows})
    raise AssertionError("the last ancestor knows nothing, so that nothing comes late to it")


def _ancestors(store: Store, sequence: int, epoch: str) -> Iterator[tuple[int, Margin]]:
    """(sequence, margin) of the versions that led to one, the newest first, as far as they are kept; last the one that knew nothing."""
    row = store.calibration_at(sequence) if sequence else None
    while row is not None:
        margin = _readable(row.body)
        if margin is None or margin.calibrator.epoch != epoch:
            break
        yield row.sequence, margin
        row = store.calibration_at(row.parent)
    yield 0, Margin(Calibrator(epoch=epoch))


def _readable(body: str) -> Margin | None:
    try:
        return margin_from(body)
    except ValueError:
        return None
