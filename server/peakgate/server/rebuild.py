"""A margin made again from what was observed, so that it is as if nothing had come late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from peakgate.calibration import Calibrator, Observation, Outcome, in_order
from peakgate.server.margin import History, Margin, margin_from
from peakgate.server.memory import MemoryModel
from peakgate.server.retell import Teller
from peakgate.server.store.base import Store
from peakgate.server.store.records import CalibrationRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A margin that was made again, and what became of each observation that it took in anew, by its name."""

    margin: Margin
    outcomes: Mapping[str, Outcome]


NEAR = 20
"""Versions that are gone back at once for a row that comes late; beyond them rows are collected, and one replay takes in all of them."""


def rebuilt(
    store: Store,
    sequence: int,
    late: Sequence[Observation],
    *,
    memory: MemoryModel,
    history: History = History.NONE,
    reach: int | None = None,
) -> Rebuilt | None:
    """The margin that took in what led to version `sequence`, and `late`, in the order of their ends.

    It goes on from the newest ancestor to which nothing of that comes late, and equals the one that learned all of it from the first on,
    to the last bit. A row of `late` replaces what was told of the same attempt before. `history` is that of the margin: what was observed
    under another memory model is told again, or left out. 0: from the first on. None: no ancestor within `reach` will do.
    """
    teller = Teller(memory, everything=history is History.RETOLD)
    anew = {row.prediction for row in late}
    for step, (place, margin) in enumerate(_ancestors(store, sequence, memory.version, history)):
        if reach is not None and step >= reach:
            return None
        told = teller.observations(store.told(sequence, after=place))
        rows = in_order([*(row for row in told if row.prediction not in anew), *late])
        if not rows or rows[0].order > margin.newest:
            return Rebuilt(margin=margin, outcomes={row.prediction: margin.learn(row) for row in rows})
    raise AssertionError("the last ancestor knows nothing, so that nothing comes late to it")


def _ancestors(store: Store, sequence: int, epoch: str, history: History) -> Iterator[tuple[int, Margin]]:
    """(sequence, margin) of the versions that led to one, the newest first, as far as they are kept; last the one that knew nothing."""
    row = store.calibration_at(sequence) if sequence else None
    while row is not None:
        margin = _readable(row)
        if margin is None or margin.calibrator.epoch != epoch:
            break
        yield row.sequence, margin
        row = store.calibration_at(row.parent) if not row.trial else None  # what a shadow learned is not what came before it
    yield 0, Margin(Calibrator(epoch=epoch), history=history)


def _readable(row: CalibrationRow) -> Margin | None:
    try:
        return margin_from(row.body)
    except ValueError:
        return None
