"""Which lines of the ledger a change of a job acts on: table 19.1.9 of "Where Does the Memory Go When Training an LLM?", by field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peakgate.v1.prediction_pb2 import Suggestion

STEP_BUFFERS = "step_buffers"
"""The temporaries of the optimizer's step, which other things make smaller than those of the passes before it."""

_STATES = frozenset({STEP_BUFFERS, "parameters", "gradients", "master_weights", "optimizer_states"})
_STEP = frozenset({"activations", "logits", "temporaries"})

ACTS_ON = (
    ("batch", _STEP),
    ("checkpointing", frozenset({"activations"})),
    ("attention", frozenset({"activations", "temporaries"})),
    ("dropout", frozenset({"activations"})),
    ("loss", frozenset({"logits", "temporaries"})),
    ("optimizer", frozenset({"optimizer_states", "master_weights", STEP_BUFFERS})),
    ("optimizer.implementation", frozenset({STEP_BUFFERS})),
    ("optimizer.in_backward", frozenset({"gradients"})),
    ("precision", _STATES | _STEP),
    ("lora", frozenset({STEP_BUFFERS, "gradients", "master_weights", "optimizer_states", "parameters"})),
    ("offload.activations", frozenset({"activations"})),
    ("offload.optimizer", frozenset({"optimizer_states", "master_weights", STEP_BUFFERS})),
    ("offload.parameters", frozenset({"parameters", "gradients"})),
    ("parallelism.context", _STEP),
    ("parallelism.sequence_parallel", frozenset({"activations"})),
    ("parallelism.sharding", _STATES),
    ("parallelism.shard_degree", _STATES),
    ("parallelism.tensor", _STATES | _STEP),
    ("parallelism.pipeline", _STATES | frozenset({"activations"})),
    ("parallelism.expert", _STATES),
    ("framework.expandable_segments", frozenset({"fragmentation"})),
    ("framework.fused_kernels", _STEP),
    ("framework.compile", _STEP),
    ("framework", frozenset({"communication", "temporaries", "runtime"})),
    ("evaluate", frozenset({"logits", "activations"})),
    ("save", frozenset({"communication", "parameters"})),
)
"""By the field or the block, the longest that fits. What is not here, a larger card before all, acts on every line."""


def categories_of(path: str) -> frozenset[str] | None:
    """The lines of the ledger that a field acts on; None: all of them."""
    fitting = [row for row in ACTS_ON if path == row[0] or path.startswith(f"{row[0]}.")]
    return max(fitting, key=lambda row: len(row[0]))[1] if fitting else None


def acting(suggestions: Iterable[Suggestion], categories: Sequence[str]) -> list[Suggestion]:
    """The suggestions that act on one of the categories, those on the first in front; what fits before what does not, cheapest first."""

    def rank(each: Suggestion) -> int | None:
        reach = [categories_of(path) for path in each.changes]
        places = [place for place, name in enumerate(categories) if any(r is None or name in r for r in reach)]
        return min(places, default=None)

    ranked = [(rank(each), each) for each in suggestions]
    kept = [(place, each) for place, each in ranked if place is not None]
    return [each for _, each in sorted(kept, key=lambda pair: (not pair[1].fits, pair[0]))]
