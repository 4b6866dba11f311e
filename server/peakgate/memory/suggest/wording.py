"""A found plan in words: its title, why it helps, what it costs, and what was not checked."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.change import with_changes
from peakgate.memory.prediction import Change
from peakgate.memory.step_time import relative, sizes_of, step_time, why
from peakgate.memory.suggest.search import Found
from peakgate.memory.suggest.space import Space, plan_of

DEGREE_TITLES = {
    "tensor": "tensor and sequence parallelism over {} GPUs",
    "pipeline": "pipeline parallelism over {} stages",
    "context": "context parallelism over {} GPUs",
    "expert": "expert parallelism over {} GPUs",
    "checkpoint_layers": "full checkpointing of the first {} layers of each stage",
}

ORDER = ("objective", "numerics", "batch", "gpus")
"""Of several things that a plan alters the first is said."""


def change_of(space: Space, found: Found) -> Change:
    """The plan as a change of the job, its step time computed for it alone."""
    plan, _ = plan_of(with_changes(space.job, found.changes), space.described)
    after = step_time(plan, sizes_of(plan), space.card)
    given_up = [option for option in found.chosen if option.degree and found.numbers[option.degree] == 1]
    reasons = list(dict.fromkeys(option.why for option in found.chosen if option not in given_up))
    return Change(
        title=" + ".join(_titles(space, found)) or "the job as it is",
        changes=found.changes,
        relative_step_time=float(relative(space.before, after)),
        why="; ".join((*reasons, why(space.before, after))),
        alters=_altered(space, found),
        conditions=tuple(_conditions(space, found)),
        required_bytes=found.required_bytes,
    )


def _titles(space: Space, found: Found) -> Iterator[str]:
    numbers, own = found.numbers, space.plan
    for option in found.chosen:
        yield _degree_title(option.degree, numbers[option.degree]) if option.degree else option.title
    if numbers["micro_batch"] != own.micro_batch:
        size, steps = numbers["micro_batch"] // own.sequences, numbers["accumulation"]
        yield f"micro-batch {size} with {steps} accumulation step{'s' if steps != 1 else ''}"
    if numbers["world"] != own.degrees.world:
        yield f"{numbers['world']} GPUs"


def _degree_title(name: str, degree: int) -> str:
    return DEGREE_TITLES[name].format(degree) if degree > 1 else f"no {name} parallelism"


def _altered(space: Space, found: Found) -> str:
    own, numbers = space.plan, found.numbers
    altered = {option.alters for option in found.chosen}
    before = own.micro_batch * own.accumulation * own.degrees.data
    if numbers["micro_batch"] * numbers["accumulation"] * numbers["data"] != before:
        altered.add("batch")
    if numbers["world"] != own.degrees.world:
        altered.add("gpus")
    return next((word for word in ORDER if word in altered), "")


def _conditions(space: Space, found: Found) -> Iterator[str]:
    for option in found.chosen:
        yield from option.conditions
    if found.host_bytes and not space.job.node.host_memory_bytes:
        yield f"a node has {found.host_bytes / 1e9:.1f} GB of RAM for it (node.host_memory_bytes is not stated)"
