"""Log-probabilities without logits: the head's product goes tile by tile into running sums, and is made again for the gradients.

Source: TRL 1.16 kernels/chunked_logprob.py (ChunkedLogProbFunction) and trainer/utils.py (add_fused_lm_head): the hidden states of the
answer's tokens are copied and kept; both gradients are summed in fp32 and cast at the end.
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.machine import Machine
from peakgate.memory.methods.log_probabilities import labels_of
from peakgate.memory.parallel import answer_tokens
from peakgate.memory.tape import FLOAT32, Tensor

HEADLESS = ("reference", "teacher")
"""Models whose pass ends in front of their head here."""


def tiled(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """The policy's, then those of the method's other model; no logits are ever whole."""
    machine.meter.enter("loss")
    labels = labels_of(machine, x.rows)
    each = _log_probabilities(machine, x)
    x.storage.drop()
    for role in HEADLESS:
        if role in machine.companions:
            hidden, cache = machine.companions[role](head=False)
            _without_graph(machine, hidden)
            for tensor in (hidden, cache):
                tensor.storage.drop()
    (loss,) = machine.call("sum_all", "", [each], 1)
    for tensor in (each, labels):
        tensor.storage.drop()
    return loss, None


def _without_graph(machine: Machine, x: Tensor) -> None:
    """Another model's: a copy of its hidden states and a tile of its own logits, which go again."""
    copied = machine.plan.micro_batch * answer_tokens(machine.plan) * x.width
    for storage in [machine.tape.allocate(size * x.itemsize, machine.category) for size in (copied, machine.dims["tile"])]:
        storage.drop()


def _log_probabilities(machine: Machine, x: Tensor) -> Tensor:
    """Of the answer's tokens: `hidden_states[:, :-1][mask]` is a copy."""
    rows = machine.plan.micro_batch * answer_tokens(machine.plan)
    (view,) = machine.call("slice", "", [x], None)
    (answers,) = machine.call("pick_masked", "", [replace(view, rows=rows)], None)
    view.storage.drop()
    kernel = "fused_loss_tiled" if answers.itemsize == FLOAT32 else "fused_loss_tiled_half"
    (result,) = machine.call(kernel, "head", [answers], machine.dims["V"])
    answers.storage.drop()
    return replace(result, width=1, itemsize=FLOAT32)


LOSSES = {"tiled": tiled}
"""By its name in the plan."""
