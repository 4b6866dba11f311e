"""The parts of a step's time."""

from __future__ import annotations

from dataclasses import dataclass, fields

from peakgate.memory.step_time.arithmetic import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one optimizer step of one rank, part by part; each a float, or an array with one entry a plan.

    Parts of communication are what is waited for. `samples` and `communication` are no parts: sequences of the global batch, and all
    seconds of data parallel traffic, hidden or not.
    """

    products: Number
    attention: Number
    elementwise: Number
    loss: Number
    recompute: Number
    accumulation: Number
    data_parallel: Number
    gathered_weights: Number
    tensor_parallel: Number
    context: Number
    expert: Number
    pipeline_bubble: Number
    pipeline_transfers: Number
    offload: Number
    optimizer: Number
    companions: Number
    samples: Number
    communication: Number

    @property
    def compute(self) -> Number:
        """Forward and backward passes, each once."""
        return self.products + self.attention + self.elementwise + self.loss

    @property
    def total(self) -> Number:
        """The whole step."""
        rest = self.recompute + self.accumulation + self.data_parallel + self.gathered_weights + self.tensor_parallel + self.context
        return (
            self.compute
            + rest
            + self.expert
            + self.pipeline_bubble
            + self.pipeline_transfers
            + self.offload
            + self.optimizer
            + self.companions
        )

    @property
    def per_sample(self) -> Number:
        """Seconds a sequence of the global batch, which plans are compared by."""
        return self.total / self.samples

    def at(self, index: int) -> StepTime:
        """One plan of an array of them."""
        return StepTime(**{field.name: _entry(getattr(self, field.name), index) for field in fields(self)})


def _entry(value: Number, index: int) -> float:
    listed: object = getattr(value, "__getitem__", None)
    return float(listed(index)) if callable(listed) else float(value)


NO_PARTS = ("samples", "communication")

PARTS = tuple(field.name for field in fields(StepTime) if field.name not in NO_PARTS)
"""The names of the parts."""


def relative(before: StepTime, after: StepTime) -> Number:
    """Time of `after` over that of `before` for the same number of sequences; below 1 is faster."""
    return after.per_sample / before.per_sample
