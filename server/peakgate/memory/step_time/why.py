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


WORTH_A_WORD = 0.05
"""A share of the step from which on a second and a third reason are named."""


def why(before: StepTime, after: StepTime) -> str:
    """What costs most more in `after`, as shares of `before`; of a faster plan, what costs most less. Both are one plan's."""
    change = {name: _change(before, after, name) for name in PARTS}
    slower = after.per_sample >= before.per_sample
    names = sorted(change, key=change.__getitem__, reverse=slower)[:3]
    told = [name for place, name in enumerate(names) if abs(change[name]) > (WORTH_A_WORD if place else LITTLE)]
    told = [name for name in told if (change[name] > 0) == slower]
    words = [_more(before, after, name, change[name]) if slower else _less(name, change[name]) for name in told]
    return ", ".join(words) or "almost free"


def _more(before: StepTime, after: StepTime, name: str, change: float) -> str:
    return MORE[name].format(more=_percent(change), times=_times(before, after))


def _less(name: str, change: float) -> str:
    return f"{LESS.get(name, 'less time for ' + name.replace('_', ' '))}, {_percent(-change)} of the step"


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
