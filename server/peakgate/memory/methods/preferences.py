"""Losses that compare answers: DPO, KTO, ORPO, reward models.

Sources: TRL 1.0 trainer/dpo_trainer.py (_compute_loss), experimental/kto/kto_trainer.py (forward, get_batch_loss_metrics),
experimental/orpo/orpo_trainer.py (concatenated_forward), trainer/reward_trainer.py (compute_loss). The batch holds chosen and rejected
answers together; every token is taken to belong to an answer where masks are applied.
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.losses_chunks import cross_entropy
from peakgate.memory.machine import Machine
from peakgate.memory.methods.log_probabilities import (
    entropies,
    labels_of,
    log_probabilities,
    passing_copy,
    shifted,
)
from peakgate.memory.methods.outputs import logits_of
from peakgate.memory.tape import Tensor

REFERENCE = "reference"


def dpo(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """The policy's log-probabilities, then those of the reference model, then what is reported; all logits are named to the end."""
    logits = logits_of(machine, x)
    machine.meter.enter("loss")
    rows = shifted(machine, logits, copied=True)
    labels, masks = labels_of(machine, rows.rows), labels_of(machine, rows.rows)
    chosen = log_probabilities(machine, rows, labels)
    named = [logits, rows, labels, masks]
    if REFERENCE in machine.companions:
        named += machine.companions[REFERENCE]()
        named.append(shifted(machine, named[-2], copied=True))
        named.append(log_probabilities(machine, named[-1], labels))
    (loss,) = machine.call("sum_all", "", [chosen], 1)
    named.append(chosen)
    entropies(machine, rows)
    passing_copy(machine, rows.nbytes // 2)  # the chosen answers' logits, then the rejected ones'
    for tensor in named:
        tensor.storage.drop()
    return loss, None


def kto(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """Copies of the logits of desirable and undesirable answers are named until the loss is there; the pass for the KL term is smaller."""
    logits = logits_of(machine, x)
    machine.meter.enter("loss")
    passed = [_kto_forward(machine, [logits])]
    if REFERENCE in machine.companions:
        passed.append(_kto_forward(machine, machine.companions[REFERENCE]()))
    (loss,) = machine.call("sum_all", "", [passed[0][0]], 1)
    for tensor in (each for group in passed for each in group):
        tensor.storage.drop()
    return loss, None


def _kto_forward(machine: Machine, outputs: list[Tensor]) -> list[Tensor]:
    """KTOTrainer.forward: log-probabilities, and the logits sorted by their label; the model's own outputs are gone."""
    logits = outputs[0]
    rows = shifted(machine, logits, copied=False)
    labels = labels_of(machine, rows.rows)
    result = log_probabilities(machine, rows, labels)
    copies = [replace(logits, storage=machine.tape.allocate(logits.nbytes // 2, machine.category)) for _ in ("chosen", "rejected")]
    for tensor in (labels, rows, *outputs):
        tensor.storage.drop()
    return [result, *copies]


def orpo(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """A cross entropy of the chosen answers beside the log-probabilities of all: both go back into the same logits."""
    logits = logits_of(machine, x)
    machine.meter.enter("loss")
    language = _cross_entropy_of_chosen(machine, logits)
    rows = shifted(machine, logits, copied=False)
    labels = labels_of(machine, rows.rows)
    each = log_probabilities(machine, rows, labels)
    (preference,) = machine.call("sum_all", "", [each], 1)
    (loss,) = machine.call("add", "", [language, preference], 1)
    for tensor in (each, labels, rows, logits, language, preference):
        tensor.storage.drop()
    return loss, None


def _cross_entropy_of_chosen(machine: Machine, logits: Tensor) -> Tensor:
    """`logits[:chosen][..., :-1, :].contiguous()` of half of the sequences, and its cross entropy."""
    count = max(1, machine.plan.micro_batch // 2)
    positions = max(1, logits.rows // machine.plan.micro_batch - 1)
    (half,) = machine.call("slice", "", [logits], None)
    half = replace(half, rows=logits.rows * count // machine.plan.micro_batch)
    (view,) = machine.call("slice", "", [half], None)
    view = replace(view, rows=count * positions)
    (copy,) = machine.call("contiguous" if count > 1 else "pass", "", [view], None)
    loss = cross_entropy(machine, copy)
    for tensor in (half, view, copy):
        tensor.storage.drop()
    return loss


def reward(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """One number a sequence: the score of its last token, chosen against rejected."""
    scores = logits_of(machine, x)
    machine.meter.enter("loss")
    (loss,) = machine.call("sum_all", "", [scores], 1)
    scores.storage.drop()
    return loss, None


LOSSES = {"dpo": dpo, "kto": kto, "orpo": orpo, "reward": reward}
"""By the name of the method."""
