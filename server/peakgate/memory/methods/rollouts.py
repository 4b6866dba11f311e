"""Losses of generated answers: only the answer's tokens have logits.

Source: TRL 1.0 trainer/grpo_trainer.py (_get_per_token_logps_and_entropies, _compute_loss): `logits_to_keep` is the length of the answer
and one more; the logits are divided by the temperature in place, which makes the backward pass copy what the view covers
(torch/csrc/autograd/functions/tensor.cpp: CopySlices).
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.machine import Machine
from peakgate.memory.methods.log_probabilities import entropies, labels_of, log_probabilities, shifted
from peakgate.memory.methods.outputs import logits_of
from peakgate.memory.tape import Tensor


def grpo(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """The log-probabilities of the answer, and the entropy of its logits for the report."""
    logits = logits_of(machine, _kept(machine, x))
    machine.meter.enter("loss")
    (tempered,) = machine.call("scale_in_place", "", [logits], None)
    rows = shifted(machine, tempered, copied=False)
    labels = labels_of(machine, rows.rows)
    each = log_probabilities(machine, rows, labels)
    flat = machine.tape.allocate(rows.nbytes if machine.plan.micro_batch > 1 else 0, machine.category)  # reshape of a view: a copy
    entropies(machine, rows)
    flat.drop()
    for tensor in (logits, tempered, rows):
        tensor.storage.drop()
    (loss,) = machine.call("sum_all", "", [each], 1)
    for tensor in (labels, each):
        tensor.storage.drop()
    return loss, None


def _kept(machine: Machine, x: Tensor) -> Tensor:
    """`hidden_states[:, -logits_to_keep:]`, folded for the head's product; takes `x` over."""
    plan = machine.plan
    if plan.completion + 1 >= plan.sequence:
        return x
    (view,) = machine.call("slice", "", [x], None)
    view = replace(view, rows=plan.micro_batch * (plan.completion + 1))
    (folded,) = machine.call("contiguous" if plan.micro_batch > 1 else "pass", "", [view], None)
    for tensor in (view, x):
        tensor.storage.drop()
    return folded


LOSSES = {"grpo": grpo}
"""By the name of the method."""
