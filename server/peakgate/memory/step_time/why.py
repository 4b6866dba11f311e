"""Why a plan costs what it costs, in one phrase."""

from __future__ import annotations

from peakgate.memory.step_time.parts import PARTS, StepTime

LITTLE = 0.002
"""A share of the step below which nothing is worth a word."""

MORE: dict[str, str] = {
    "products": "matrix products take {more} longer: fewer rows or narrower matrices a GPU",
    "attention": "the attention core takes {more} of a step longer",
    "elementwise": "{more} more time for what only moves memory: norms, activations, additions, weights made whole",
    "loss": "{more} more time for the loss",
    "recompute": "{more} more time for recomputation",
    "accumulation": "{more} more time for adding up gradients over micro-batches",
    "data_parallel": "{times} the data parallel communication, {more} of the step not hidden",
    "gathered_weights": "{times} the data parallel communication, {more} of the step waiting for weights",
    "tensor_parallel": "all-reduces in every layer, {more} of the step",
    "context": "keys and values of other ranks, {more} of the step",
    "expert": "tokens sent to experts and back, {more} of the step",
    "pipeline_bubble": "stages wait for each other, {more} of the step",
    "pipeline_transfers": "activations sent between stages, {more} of the step",
    "offload": "the link to the host and its CPUs, {more} of the step",
    "optimizer": "{more} more time for the optimizer's step",
    "companions": "{more} more time for the method's other models",
}

LESS: dict[str, str] = {
    "attention": "the s × s scores are not moved through memory",
    "recompute": "less is recomputed",
    "optimizer": "each GPU steps fewer weights",
    "accumulation": "fewer micro-batches",
    "products": "each GPU multiplies less",
}


def why(before: StepTime, after: StepTime) -> str:
    """What costs most more in `after`, as a share of `before`; of a faster plan, what costs most less. Both are one plan's."""
    change = {name: _change(before, after, name) for name in PARTS}
    most, least = max(change, key=change.__getitem__), min(change, key=change.__getitem__)
    faster = after.per_sample < before.per_sample
    if change[most] > LITTLE and not faster:
        return MORE[most].format(more=_percent(change[most]), times=_times(before, after))
    if change[least] < -LITTLE:
        return f"{LESS.get(least, 'less time for ' + least.replace('_', ' '))}, {_percent(-change[least])} of the step"
    return "almost free"


def _change(before: StepTime, after: StepTime, name: str) -> float:
    """Seconds a sequence, as a share of the step before."""
    return float((getattr(after, name) / after.samples - getattr(before, name) / before.samples) / before.per_sample)


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.1 else 1}f} %"


def _times(before: StepTime, after: StepTime) -> str:
    """The traffic of data parallelism against what it was."""
    if not before.communication:
        return "new"
    ratio = after.communication / after.samples * before.samples / before.communication
    return f"{ratio:.3g}×"
