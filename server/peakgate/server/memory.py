"""The memory model as the service sees it: a bundle of functions, so that tests and later models can come in by argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from peakgate.memory.cards import Card
from peakgate.memory.catalog.models import ModelSpec
from peakgate.memory.change import Value
from peakgate.memory.job import Job
from peakgate.memory.prediction import Prediction
from peakgate.memory.suggest.wanted import LimitOf, Plans, Wanted

Changes = tuple[tuple[str, Value], ...]


class Capacity(Protocol):
    """The card that a job asks for."""

    @property
    def gpu(self) -> str:
        """Catalogue name; empty when only bytes were given."""

    @property
    def total_bytes(self) -> int:
        """What NVML reports as the card's total."""

    @property
    def usable_bytes(self) -> int:
        """The total without what the driver keeps."""

    @property
    def is_part(self) -> bool:
        """Whether that is a part of the card, the rest of which others have."""


class WithChanges(Protocol):
    """A job with some fields replaced."""

    def __call__(self, job: Job, changes: Iterable[tuple[str, Value]], /) -> Job:
        """Raises JobError for an unknown path or a value of another type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryModel:
    """What the service asks of `peakgate.memory`."""

    predict: Callable[[Job], Prediction]
    replayed: Callable[[Job], Prediction]
    """The same with reserved and required bytes from a replay of every allocation."""
    capacity_of: Callable[[Job], Capacity | None]
    favourable: Callable[[Job], Changes]
    with_changes: WithChanges
    plans: Callable[[Job, LimitOf, Wanted], Plans]
    version: str
    cards: Callable[[Job], tuple[Card, ...]] = lambda _: ()
    """The cards that can run a job at all, smallest first."""


def memory_model(site_models: Iterable[ModelSpec] = ()) -> MemoryModel:
    """The real memory model, whose catalogue has `site_models` beside the published ones: in the whole process, one service each."""
    from peakgate.memory import MODEL_VERSION
    from peakgate.memory.capacity import capacity_of
    from peakgate.memory.cards import cards_for
    from peakgate.memory.catalog.models import set_site_models
    from peakgate.memory.change import with_changes
    from peakgate.memory.favourable import favourable
    from peakgate.memory.predict import predict

    set_site_models(site_models)
    return MemoryModel(
        predict=predict,
        replayed=partial(predict, exact=True),
        capacity_of=capacity_of,
        favourable=favourable,
        with_changes=with_changes,
        plans=_plans,
        version=MODEL_VERSION,
        cards=cards_for,
    )


def _plans(job: Job, limit_of: LimitOf, wanted: Wanted) -> Plans:
    """The memory model's plan search; it is loaded when it is first needed, since it brings numpy."""
    from peakgate.memory.suggest.plans import plans_of

    return plans_of(job, limit_of, wanted)
